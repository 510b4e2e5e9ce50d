"""Metrics for Prometheus. `prometheus-client` comes with headrace[metrics], and is imported only when asked for."""

from typing import TYPE_CHECKING

from headrace.core.errors import SettingsError

if TYPE_CHECKING:
    from headrace.telemetry.prometheus.collector import HeadraceCollector


def load_collector() -> "type[HeadraceCollector]":
    try:
        from headrace.telemetry.prometheus.collector import HeadraceCollector
    except ModuleNotFoundError as error:
        if error.name != "prometheus_client":
            raise
        raise SettingsError(
            "metrics need prometheus-client, which is not installed: pip install 'headrace[metrics]'"
        ) from error
    return HeadraceCollector
