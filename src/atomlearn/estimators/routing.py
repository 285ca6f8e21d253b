"""Metadata routing of scikit-learn: whether it is on, and where a search sends what."""

from __future__ import annotations

from typing import Any

from sklearn import get_config
from sklearn.metrics import get_scorer
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping


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


def router_of(estimator: Any) -> MetadataRouter:
    """Return the routing of a search: fit to the splitter and the scorer, score to the scorer."""
    router = (
        MetadataRouter(owner=estimator)
        .add_self_request(estimator)
        .add(
            splitter=estimator.cv,
            method_mapping=MethodMapping().add(caller="fit", callee="split"),
        )
    )
    if estimator.scoring is not None:
        router.add(
            scorer=get_scorer(estimator.scoring),
            method_mapping=MethodMapping()
            .add(caller="fit", callee="score")
            .add(caller="score", callee="score"),
        )
    return router
