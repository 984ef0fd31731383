"""Secrets: create, rotate, delete. Values are encrypted before the store sees them."""

from __future__ import annotations

from taskexecutor_common.crypto import KeyRing
from taskexecutor_common.errors import Conflict, NameTaken, SecretNotFound
from taskexecutor_common.model.setup import ReferenceKind, Secret
from taskexecutor_common.rpc.hints import DispatcherHints
from taskexecutor_common.store.setup import SetupStore


async def create_secret(store: SetupStore, keys: KeyRing, namespace: str, name: str, value: str) -> Secret:
    """Encrypts and stores a value. Raises NameTaken."""
    key_id, encrypted = keys.encrypt(value, namespace=namespace, name=name)
    secret = await store.create_secret(namespace, name, key_id, encrypted)
    if secret is None:
        raise NameTaken(f"name: a secret '{name}' exists already", field="name")
    return secret


async def rotate_secret(
    store: SetupStore, keys: KeyRing, hints: DispatcherHints, namespace: str, name: str, value: str
) -> Secret:
    """Replaces the value and tells the dispatchers. Raises SecretNotFound."""
    key_id, encrypted = keys.encrypt(value, namespace=namespace, name=name)
    secret = await store.update_secret(namespace, name, key_id, encrypted)
    if secret is None:
        raise SecretNotFound.named(name)
    hints.forget_secret(namespace, name)
    return secret


async def delete_secret(store: SetupStore, hints: DispatcherHints, namespace: str, name: str) -> None:
    """Deletes what no endpoint names. Raises SecretNotFound, Conflict."""
    existed, endpoints = await store.delete(ReferenceKind.SECRET, namespace, name)
    if not existed:
        raise SecretNotFound.named(name)
    if endpoints:
        raise Conflict(f"secret '{name}' is used by endpoint {', '.join(endpoints)}")
    hints.forget_secret(namespace, name)
