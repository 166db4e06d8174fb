// Marks in the navigation where the reader is. The page works without it.
const links = new Map([...document.querySelectorAll("nav a")].map((a) => [a.hash.slice(1), a]));
const watcher = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (!entry.isIntersecting) continue;
    links.forEach((a, id) => a.classList.toggle("here", id === entry.target.id));
  }
}, { rootMargin: "-20% 0px -70% 0px" });
document.querySelectorAll("section[id]").forEach((section) => watcher.observe(section));
