"""Who is moved by which loss.

Two kinds of evidence. From the traced program: which inputs an output can depend on at all. And
from numbers: Adam's first moment after one step is a tenth of the gradient, so the gradient behind
every network of an update can be read off and compared with differences of the loss as the papers
state it (reference.py), in double precision and with all noise fixed.
"""

from functools import cache

import jax
import numpy as np
import pytest

import reference as ref
from ertrl.data import Sampler
from ertrl.data.sampler import SamplingConfig
from ertrl.learners import LearnerStep, get_learner
from ertrl.methods import gan, get_method
from ertrl.methods.focal import FocalState
from ertrl.training.config import TrainConfig
from ertrl.training.update import TrainState, init, run_key, update
from toys import (
    DIMS,
    LATENT,
    LEARNERS,
    METHODS,
    NO_SLOPE,
    NOISE,
    SAMPLING,
    assert_follows,
    assert_gradient,
    assert_trees_equal,
    double,
    influences,
    learner_program,
    leaves,
    method_program,
    method_setting,
    one_batch,
    random_state,
    small_config,
    table,
    trees_differ,
    write_dataset,
)

every_learner = pytest.mark.parametrize("learner", LEARNERS)
every_critic = pytest.mark.parametrize(
    "learner", [name for name in LEARNERS if get_learner(name).has_critic]
)


def setting(learner, seed=0, **values):
    """Configuration, program, state, batch and z of a learner on its own."""
    config, program = learner_program(learner, **values)
    state = random_state(get_learner(learner).init, config, DIMS, LATENT, seed=seed)
    batch = double(one_batch(small_config("focal", learner, **values), seed))
    z = np.tanh(np.random.default_rng(seed).normal(size=(len(batch.task), LATENT)))
    return config, program, double(state), batch, z


def parts(state, step):
    """(name, before, after) of each network, without its optimiser."""
    pairs = [(name, getattr(state, name), getattr(step, name)) for name in state._fields]
    return [(n, *(getattr(x, "net", x) for x in both)) for n, *both in pairs]


def noticed(one, other):
    """Names of the networks in which two states differ."""
    return {name for name, a, b in parts(one, other) if trees_differ(a, b)}


# --- who can influence whom, whatever the numbers are ---


def traced_update(method, learner):
    """Output -> inputs of a whole meta-training step."""
    config = small_config(method, learner)
    state = jax.eval_shape(lambda: init(config, DIMS))
    state = jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), state)
    found = influences(
        lambda state, batch: update(config, state, batch, run_key(0))[0],
        state,
        one_batch(config),
    )
    return {
        out: {i.removeprefix("[0]") for i in inputs if i.startswith("[0]")}
        for out, inputs in found.items()
    }


@every_learner
@pytest.mark.parametrize("method", METHODS)
def test_the_learner_reaches_the_encoder_only_where_a_method_declares_it(method, learner):
    has_critic = get_learner(learner).has_critic
    if get_method(method).hears_critic and not has_critic:
        pytest.skip("refused at the start")
    found = traced_update(method, learner)
    of_method = {out for out in found if out.startswith(".method")}
    assert of_method
    reached = {o for o in of_method if any(i.startswith(".learner") for i in found[o])}
    assert bool(reached) == get_method(method).hears_critic, reached
    # The other way z passes, or the learner would not know its task.
    prefix = ".learner.critic." if has_critic else ".learner."
    behind = set().union(*(inputs for out, inputs in found.items() if out.startswith(prefix)))
    assert any(i.startswith(".method") for i in behind), f"z does not reach {prefix}"


def test_an_update_hands_z_its_slope_and_fresh_keys_around():
    """One step with stubs that only take notes."""
    seen = []

    class Represent(get_method("focal")):
        def encode(self, state, context):
            assert context.reward.shape == (SAMPLING.meta_batch, SAMPLING.context_size)
            return context.reward[:, :LATENT] + state

        def update(self, state, batch, z_gradient, key):
            seen[-1] |= {"slope": z_gradient, "method key": jax.random.key_data(key)}
            return state + 1, {"b": z_gradient.sum()}

    class Learn(get_learner("td3bc")):
        def update(self, state, rl, more_rl, z, key):
            seen.append({"rl": rl, "z": z, "learner key": jax.random.key_data(key)})
            return LearnerStep(state + 1, 2 * z, {"a": z.sum()})

    config = TrainConfig(Represent(), Learn(), SAMPLING)
    batch = one_batch(config)
    state = TrainState(np.float32(0), np.float32(10), np.int32(0))
    for _ in range(2):
        state, metrics = update(config, state, batch, run_key(0))
        assert metrics.keys() == {"a", "b"}
    update(config, state._replace(step=np.int32(0)), batch, run_key(1))
    assert tuple(state) == (2, 12, 2)
    # z comes from the first context of each task, and from the method's state before its step.
    first = batch.context.reward[:, 0, :LATENT]
    for i in range(2):
        np.testing.assert_allclose(seen[i]["z"], first + i, rtol=1e-6)
        np.testing.assert_array_equal(seen[i]["slope"], 2 * seen[i]["z"])
        assert_trees_equal(seen[i]["rl"], batch.rl)
    # Two keys per step and seed, none of them used twice.
    keys = {tuple(np.asarray(notes[k])) for notes in seen for k in ("method key", "learner key")}
    assert len(keys) == 6


@cache
def traced_learner(learner):
    config = small_config("focal", learner)
    state = random_state(get_learner(learner).init, config.learner, DIMS, LATENT)
    batch, key = one_batch(config), jax.random.key(0)

    def new_state(state, z):
        step = get_learner(learner).update(config.learner, state, batch.rl, batch.more_rl, z, key)
        return step.state

    return influences(new_state, state, NO_SLOPE.astype(np.float32))


def networks_behind(learner, name):
    """The networks of the old state that a network of the new state can depend on."""
    found = traced_learner(learner)
    outputs = [inputs for out, inputs in found.items() if out.split(".")[1] == name]
    assert outputs
    inside = {i.split(".")[1] for inputs in outputs for i in inputs if i.startswith("[0].")}
    return {name for name in inside if "metrics" not in name}  # they only pass through


@pytest.mark.parametrize(
    ("learner", "name", "sources"),
    [
        # The critics' loss knows its targets; the actor's loss never moves them.
        ("td3bc", "critic", {"critic", "target_critic", "target_actor"}),
        ("td3bc", "target_critic", {"critic", "target_critic", "target_actor"}),
        # The actor climbs the critic after its step, every second time.
        ("td3bc", "actor", {"actor", "critic", "target_critic", "target_actor", "updates"}),
        # The dual critic compares policy and data; nothing of the reward reaches it.
        ("brac", "estimator", {"estimator", "actor"}),
        # Neither actor nor dual critic reach the critics within a step.
        ("brac", "critic", {"critic", "target_value"}),
        # V estimates the actor's value under the critics: the divergence is no part of it.
        ("brac", "value", {"value", "actor", "critic", "target_value"}),
        ("brac", "target_value", {"value", "actor", "critic", "target_value"}),
        ("brac", "alpha", {"alpha", "actor", "estimator"}),
        ("brac", "actor", {"actor", "critic", "target_value", "estimator", "alpha"}),
        # V and actor hear of the slow critics only; no policy reaches V or the critics.
        ("iql", "value", {"value", "target_critic"}),
        ("iql", "actor", {"actor", "value", "target_critic"}),
        ("iql", "critic", {"critic", "value", "target_critic"}),
    ],
)
def test_networks_depend_on_what_their_loss_names_and_on_nothing_else(learner, name, sources):
    assert networks_behind(learner, name) == sources


# --- the encoder's own gradient ---


def fakes(encoder, batch, generator):
    """Eq. (generate), given the first context of each task."""
    s = batch.rl.observation
    codes = ref.encode(encoder.net, batch.context, encoder.next_observation)
    zs = ref.for_rows(codes[:, 0], s.shape[1])
    return np.tanh(ref.mlp(generator, s, zs, table((*s.shape[:2], NOISE), "normal")))


def representation_loss(config, batch, generator=None):
    """The twin's encoder loss as a function of the encoder; FOCAL's if there is no generator."""
    task = np.repeat(batch.task, batch.context.reward.shape[1])

    def loss(encoder):
        codes = ref.encode(encoder.net, batch.context, encoder.next_observation)
        dml = ref.distance_metric(
            codes.reshape(len(task), -1),
            task,
            config.dml.positive_epsilon,
            config.dml.negative_epsilon,
            config.dml.beta,
        )
        if generator is None:
            return dml
        fake = fakes(encoder, batch, generator)
        return dml + config.mi_weight * ref.mutual_information(fake, config.ridge)

    return loss


@pytest.mark.parametrize(("contexts", "next_observation"), [(1, True), (2, False)])
def test_focal_encoder_follows_the_distance_metric(contexts, next_observation):
    config, program = method_program("focal", next_observation=next_observation)
    batch = double(one_batch(small_config("focal", "td3bc", contexts_per_task=contexts)))
    state = double(random_state(get_method("focal").init, config, DIMS))
    new, metrics = program(state, batch, NO_SLOPE)
    loss = representation_loss(config, batch)
    assert_follows(loss, state.encoder, new.encoder, config.encoder.learning_rate)
    np.testing.assert_allclose(metrics["dml_loss"], loss(state.encoder.net), rtol=1e-9)
    # Positive pairs exist only among several contexts of a task.
    _, other = program(state, batch, NO_SLOPE, positive_epsilon=4.0)
    assert (metrics["dml_loss"] != other["dml_loss"]) == (contexts > 1)
    # The critic's slope is offered and declined.
    assert_trees_equal(new, program(state, batch, NO_SLOPE + 1e6)[0])


def test_er_trl_encoder_follows_distance_metric_and_entropy():
    config, program, state, batch = method_setting("er-trl", rounds=1)
    new, metrics = program(state, batch, NO_SLOPE)
    # The entropy is that of the generator after its GAN round.
    loss = representation_loss(config, batch, new.gan.generator.net)
    assert_follows(loss, state.encoder, new.encoder, config.encoder.learning_rate)
    total = metrics["dml_loss"] + config.mi_weight * metrics["mi_loss"]
    np.testing.assert_allclose(total, loss(state.encoder.net), rtol=1e-9)
    stale = representation_loss(config, batch, state.gan.generator.net)
    assert abs(stale(state.encoder.net) - total) > 1e-6
    assert_trees_equal(new, program(state, batch, NO_SLOPE + 1e6)[0])


def test_the_entropy_reaches_the_encoder_only():
    _, program, state, batch = method_setting("er-trl", rounds=1)
    without, _ = program(state, batch, NO_SLOPE, mi_weight=0.0)
    much, _ = program(state, batch, NO_SLOPE, mi_weight=100.0)
    assert_trees_equal(without.gan, much.gan)
    assert trees_differ(without.encoder, much.encoder)


def test_an_encoder_step_on_the_entropy_spreads_the_generated_actions():
    config, program, state, batch = method_setting("er-trl", rounds=1)
    new, _ = program(state, batch, NO_SLOPE, mi_weight=1e6)
    before, after = (
        ref.action_entropy(fakes(trained.net, batch, new.gan.generator.net), config.ridge).mean()
        for trained in (state.encoder, new.encoder)
    )
    assert after > before + 1e-4


def test_gan_rounds_leave_no_trace_in_the_encoder():
    # Without the entropy term ER-TRL's encoder steps as FOCAL's does, whatever the GAN is.
    _, program, state, batch = method_setting("er-trl", rounds=1)
    other = state._replace(gan=method_setting("er-trl", seed=1, rounds=1)[2].gan)
    one, _ = program(state, batch, NO_SLOPE, mi_weight=0.0)
    two, _ = program(other, batch, NO_SLOPE, mi_weight=0.0)
    assert trees_differ(one.gan, two.gan)
    assert_trees_equal(one.encoder, two.encoder)
    _, focal = method_program("focal", next_observation=False)
    alone, _ = focal(FocalState(state.encoder), batch, NO_SLOPE)
    for a, b in zip(*map(jax.tree.leaves, (one.encoder, alone.encoder)), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-12)


# --- the GAN ---


def test_gan_follows_its_own_losses():
    config, program, state, batch = method_setting("er-trl", rounds=1)
    new, metrics = program(state, batch, NO_SLOPE)
    old, s, real = state.gan, batch.rl.observation, batch.rl.action
    codes = ref.encode(state.encoder.net.net, batch.context, next_observation=False)
    zs = ref.for_rows(codes[:, 0], s.shape[1])  # the first context's code, before the step
    noise = table((*s.shape[:2], NOISE), "normal")

    def generated(generator):
        return np.tanh(ref.mlp(generator, s, zs, noise))

    def discriminate(discriminator):
        fake = generated(old.generator.net)
        return ref.discriminator_loss(
            ref.mlp(discriminator, real, s, zs), ref.mlp(discriminator, fake, s, zs)
        )

    def deceive(generator):  # the discriminator has moved before
        return ref.generator_loss(ref.mlp(new.gan.discriminator.net, generated(generator), s, zs))

    for name, loss in (("discriminator", discriminate), ("generator", deceive)):
        before, after = getattr(old, name), getattr(new.gan, name)
        assert_follows(loss, before, after, config.gan.learning_rate)
        np.testing.assert_allclose(metrics[f"{name}_loss"], loss(before.net), rtol=1e-9)


def test_generated_actions_vary_with_the_noise_alone():
    config = small_config("er-trl", "td3bc").method
    generator = random_state(config.init, DIMS).gan.generator.net
    s, z = np.zeros((1, 50, 3), np.float32), np.zeros((1, LATENT), np.float32)
    generate = jax.jit(lambda key: gan.generate(generator, s, z, config.gan.noise(s, key)))
    first, again, second = (generate(jax.random.key(k)) for k in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, second)
    assert np.abs(first).max() < 1
    assert first.std(axis=1).min() > 0.05  # though all states are equal


# --- what holds for every learner ---


@every_learner
def test_targets_move_by_exactly_tau(learner):
    _, program, state, batch, z = setting(learner)
    targets = [name for name in state._fields if name.startswith("target_")]
    if not targets:
        assert not get_learner(learner).has_critic, "a critic has a target"
        pytest.skip("has none")
    for tau in (0.0, 0.25, 1.0):
        new = program(state, batch.rl, batch.more_rl, z, tau=tau).state
        for name in targets:
            source = getattr(new, name.removeprefix("target_")).net
            trees = getattr(state, name), source, getattr(new, name)
            for target, s, moved in zip(*map(jax.tree.leaves, trees), strict=True):
                expected = ref.soft_update(target, s, tau)
                np.testing.assert_allclose(moved, expected, rtol=1e-12, atol=1e-12, err_msg=name)


@every_critic
def test_z_gradient_is_that_of_the_critics_loss(learner):
    # Without a future the target does not depend on z, so the reported loss can be differenced.
    _, program, state, batch, z = setting(learner)

    def at(z):
        return program(state, batch.rl, batch.more_rl, z, discount=0.0)

    slope = at(z).z_gradient
    for place in np.ndindex(2, 3):
        nudge = np.zeros_like(z)
        nudge[place] = 1e-6
        ends = [at(z + by).metrics["critic_loss"] for by in (nudge, -nudge)]
        np.testing.assert_allclose(slope[place], (ends[0] - ends[1]) / 2e-6, rtol=1e-5)
    assert slope.shape == z.shape


@every_critic
def test_terminal_states_have_no_future_and_others_have(learner):
    _, program, state, batch, z = setting(learner)
    rl = batch.rl
    assert 0 < rl.terminated.sum() < rl.terminated.size
    base = program(state, rl, batch.more_rl, z).state

    def with_next(where):
        following = np.where(where[..., None], rl.next_observation + 5, rl.next_observation)
        changed = rl._replace(next_observation=following)
        return program(state, changed, batch.more_rl, z).state

    assert_trees_equal(base, with_next(rl.terminated == 1))
    assert "critic" in noticed(base, with_next(rl.terminated == 0))


@every_learner
def test_every_network_of_a_learner_moves(learner):
    _, program, state, batch, z = setting(learner)
    if "alpha" in state._fields:
        state = state._replace(alpha=np.asarray(3.0))
    new = program(state, batch.rl, batch.more_rl, z).state
    before, after = leaves(state), leaves(new)
    assert not [name for name in before if np.array_equal(before[name], after[name])]


# --- time-outs, from the file to the loss ---


def test_sampler_bootstraps_through_time_outs_only(tmp_path):
    dataset = write_dataset(tmp_path / "toy")
    sampling = SamplingConfig(meta_batch=3, batch_size=40, context_size=10, contexts_per_task=2)
    batch = Sampler(dataset, sampling, 2, seed=0).batches(0, 5)
    seen = set()
    for rows in (batch.rl, batch.more_rl):
        s, s2 = rows.observation, rows.next_observation
        assert max(s.max(), s2.max()) < 99  # nothing from behind an episode's end
        np.testing.assert_array_equal(s2[..., 1], s[..., 1] + 1)
        np.testing.assert_array_equal(s2[..., 0], s[..., 0])
        # Episode 0 ends after step 1 in a terminal state; episode 1 is cut after step 13.
        np.testing.assert_array_equal(rows.terminated, s[..., 1] == 1)
        seen |= set(s[..., 1].ravel())
    assert seen == {0, 1, 10, 11, 12, 13}
    for row in (batch.rl.observation[..., 0], batch.context.observation[..., 0]):
        task = batch.task.reshape(5, 3, *(1 for _ in row.shape[2:]))
        np.testing.assert_array_equal(row, np.broadcast_to(task, row.shape))
    # Tasks come without replacement; the contexts of a task are draws of their own.
    assert all(len(set(row)) == 3 for row in batch.task)
    places = batch.context.observation[..., 1]
    assert (places[:, :, 0] != places[:, :, 1]).any(axis=-1).all()
    assert (batch.rl.observation[..., :10, 1] != places[:, :, 0]).any(axis=-1).all()
    # The cut row counts on what follows: y = r + discount V(14).
    cut = batch.rl.observation[..., 1] == 13
    assert cut.any()
    assert (batch.rl.terminated[cut] == 0).all()
    assert (batch.rl.next_observation[cut][:, 1] == 14).all()


@every_critic
def test_a_learner_on_sampled_data_counts_on_the_future_of_time_outs(learner, tmp_path):
    dataset = write_dataset(tmp_path / "toy")
    config, program, state, _, z = setting(learner)
    drawn = Sampler(dataset, SAMPLING, config.extra_batches, seed=0).batches(0, 1)
    rl, more_rl = (double(jax.tree.map(lambda x: x[0], x)) for x in (drawn.rl, drawn.more_rl))
    base = program(state, rl, more_rl, z).state
    for last, has_future in ((1, False), (13, True)):  # the terminal step and the cut one
        rows = rl.observation[..., 1] == last
        assert rows.any()
        following = np.where(rows[..., None], rl.next_observation + 5, rl.next_observation)
        changed = rl._replace(next_observation=following)
        new = program(state, changed, more_rl, z).state
        assert trees_differ(base.critic, new.critic) == has_future


def test_batches_depend_on_their_number_only(tmp_path):
    dataset = write_dataset(tmp_path / "toy")
    sampling = SamplingConfig(meta_batch=3, batch_size=4, context_size=2)
    together = Sampler(dataset, sampling, 1, seed=3).batches(5, 4)
    for i in range(4):
        alone = Sampler(dataset, sampling, 1, seed=3).batches(5 + i, 1)
        assert_trees_equal(jax.tree.map(lambda x, i=i: x[i : i + 1], together), alone)
    assert trees_differ(together, Sampler(dataset, sampling, 1, seed=4).batches(5, 4))


# --- TD3+BC ---


def test_td3bc_follows_its_own_losses():
    config, program, state, batch, z = setting("td3bc")
    step = program(state, batch.rl, batch.more_rl, z, policy_noise=0.7)
    new, metrics = step.state, step.metrics
    s, a, r, s2, terminated = batch.rl
    zs = ref.for_rows(z, s.shape[1])
    noise = np.clip(0.7 * table(a.shape, "normal"), -config.noise_clip, config.noise_clip)
    assert (np.abs(noise) == config.noise_clip).any()
    a2 = np.clip(np.tanh(ref.mlp(state.target_actor, s2, zs)) + noise, -1, 1)
    assert (np.abs(a2) == 1).any()
    target = state.target_critic
    later = np.minimum(*(ref.mlp(q, s2, a2, zs)[..., 0] for q in (target.first, target.second)))
    y = ref.td_target(r, terminated, later, config.discount)

    def critic_loss(critic, z=z):
        return ref.twin_error(critic, s, a, z, y)

    def actions_and_values(actor):
        action = np.tanh(ref.mlp(actor, s, zs))
        return action, ref.mlp(new.critic.net.first, s, action, zs)[..., 0]

    scale = np.abs(actions_and_values(state.actor.net)[1]).mean()

    def actor_loss(actor):  # mean|Q| is a constant of the step
        action, q = actions_and_values(actor)
        return -config.weight * q.mean() / scale + ((action - a) ** 2).mean()

    for name, loss in (("critic", critic_loss), ("actor", actor_loss)):
        assert_follows(loss, getattr(state, name), getattr(new, name), config.learning_rate)
    assert_gradient(lambda z: critic_loss(state.critic.net, z), z, step.z_gradient)
    np.testing.assert_allclose(metrics["critic_loss"], critic_loss(state.critic.net), rtol=1e-9)
    action, q = actions_and_values(state.actor.net)
    twin = ref.td3bc_actor(q, action, a, config.weight)
    np.testing.assert_allclose(metrics["actor_loss"], twin, rtol=1e-6)


def test_td3bc_actor_moves_every_second_time():
    _, program, state, batch, z = setting("td3bc")
    moved = []
    for _ in range(4):
        new = program(state, batch.rl, batch.more_rl, z).state
        moved.append("actor" in noticed(state, new))
        assert {"critic", "target_critic", "target_actor", "updates"} <= noticed(state, new)
        state = new
    assert moved == [True, False, True, False]


def test_td3bc_actors_loss_moves_the_actor_only():
    _, program, state, batch, z = setting("td3bc")
    trusting, imitating = (
        program(state, batch.rl, batch.more_rl, z, weight=w).state for w in (50.0, 0.0)
    )
    assert noticed(trusting, imitating) == {"actor", "target_actor", "actor_metrics"}
    # Without trust in Q nothing of the critics reaches the actor.
    other = state._replace(critic=setting("td3bc", seed=1)[2].critic)
    deaf = program(other, batch.rl, batch.more_rl, z, weight=0.0).state
    assert noticed(imitating, deaf) == {"critic", "target_critic"}


# --- IQL ---


def test_iql_follows_its_own_losses():
    config, program, state, batch, z = setting("iql")
    step = program(state, batch.rl, batch.more_rl, z)
    new, metrics = step.state, step.metrics
    s, a, r, s2, terminated = batch.rl
    zs = ref.for_rows(z, s.shape[1])
    target = state.target_critic
    q = np.minimum(*(ref.mlp(net, s, a, zs)[..., 0] for net in (target.first, target.second)))
    v = ref.mlp(state.value.net, s, zs)[..., 0]
    weight = ref.advantage_weight(q - v, config.temperature, config.weight_max)
    y = ref.td_target(r, terminated, ref.mlp(new.value.net, s2, zs)[..., 0], config.discount)

    def value_loss(value):
        return ref.expectile_error(q - ref.mlp(value, s, zs)[..., 0], config.expectile)

    def actor_loss(actor):
        std = np.exp(np.clip(actor.log_std, -5, 2))
        off = (a - np.tanh(ref.mlp(actor.mean, s, zs))) / std
        return (weight * (0.5 * off**2 + np.log(std)).sum(axis=-1)).mean()

    def critic_loss(critic, z=z):
        return ref.twin_error(critic, s, a, z, y)

    for name, loss in (("value", value_loss), ("actor", actor_loss), ("critic", critic_loss)):
        assert_follows(loss, getattr(state, name), getattr(new, name), config.learning_rate)
        np.testing.assert_allclose(
            metrics[f"{name}_loss"], loss(getattr(state, name).net), rtol=1e-6
        )
    assert_gradient(lambda z: critic_loss(state.critic.net, z), z, step.z_gradient)
