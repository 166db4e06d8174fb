"""Agents that leave JAX: exported files, and proof that they do the same."""

from ertrl.deploy.export import export_agent, verify_agent

__all__ = ["export_agent", "verify_agent"]
