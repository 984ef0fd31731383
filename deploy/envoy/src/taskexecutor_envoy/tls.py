"""TLS on both sides of the gateway: what callers see of it, and how it meets the api."""

from __future__ import annotations

from taskexecutor_envoy.options import GatewayOptions, Json

PEER_NAME = "taskexecutor.internal"
"""The name in every certificate of the system, the api's and the gateway's own (docs/operations.md)."""

_TYPE = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3."
_PROTOCOLS = {"tls_minimum_protocol_version": "TLSv1_2", "tls_maximum_protocol_version": "TLSv1_3"}


def towards_callers(options: GatewayOptions) -> Json:
    """What a filter chain has besides, when callers are to speak TLS."""
    if options.tls_cert is None or options.tls_key is None:
        return {}
    # HTTP/2 first, which gRPC needs.
    context = _context(["h2", "http/1.1"], options.tls_cert, options.tls_key)
    return {
        **_socket("DownstreamTlsContext", {"common_tls_context": context}),
        "transport_socket_connect_timeout": "10s",  # as long as a caller may take for the head of a request
    }


def towards_api(options: GatewayOptions) -> Json:
    """What the cluster has besides, when the api speaks TLS: the gateway shows a certificate and wants to see the api's."""
    if options.upstream_cert is None or options.upstream_key is None or options.upstream_ca is None:
        return {}
    validation = {
        "trusted_ca": {"filename": options.upstream_ca},
        "match_typed_subject_alt_names": [{"san_type": "DNS", "matcher": {"exact": PEER_NAME}}],
    }
    context = _context(["h2"], options.upstream_cert, options.upstream_key)
    return _socket(
        "UpstreamTlsContext", {"sni": PEER_NAME, "common_tls_context": {**context, "validation_context": validation}}
    )


def _context(protocols: list[str], certificate: str, key: str) -> Json:
    return {
        "tls_params": _PROTOCOLS,
        "alpn_protocols": protocols,
        "tls_certificates": [{"certificate_chain": {"filename": certificate}, "private_key": {"filename": key}}],
    }


def _socket(type_name: str, settings: Json) -> Json:
    typed_config = {"@type": _TYPE + type_name, **settings}
    return {"transport_socket": {"name": "envoy.transport_sockets.tls", "typed_config": typed_config}}
