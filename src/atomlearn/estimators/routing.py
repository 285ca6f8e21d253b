"""Metadata routing: the two questions that scikit-learn answers under private names only."""

from __future__ import annotations

from typing import Any

from sklearn import get_config


def routing_enabled() -> bool:
    """Return whether the user has enabled metadata routing."""
    return bool(get_config().get("enable_metadata_routing", False))


def raise_unless_routed(params: dict[str, Any], owner: Any, method: str) -> None:
    """Raise ValueError where further metadata is passed although routing is off."""
    if params and not routing_enabled():
        raise ValueError(
            f"[{', '.join(sorted(params))}] are passed to {type(owner).__name__}.{method} but "
            "metadata routing is off; call sklearn.set_config(enable_metadata_routing=True) and "
            "request them with set_split_request or set_score_request"
        )
