"""`taskexecutor-admin`: keys, namespaces and secrets from the command line, straight on the database."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable

from pydantic import SecretStr

from taskexecutor_common.api_keys import generate_key, parse_key
from taskexecutor_common.config.settings import DatabaseSettings, load
from taskexecutor_common.crypto import DecryptionFailed, KeyRing
from taskexecutor_common.errors import TaskExecutorError
from taskexecutor_common.model.setup import Scope
from taskexecutor_common.store.api_keys import ApiKeyStore
from taskexecutor_common.store.database import Database
from taskexecutor_common.store.retention import RetentionStore
from taskexecutor_common.store.setup import SetupStore

_NO_DEFAULT = 0  # retention is only set and shown here, never applied


class AdminSettings(DatabaseSettings):
    """Settings of taskexecutor-admin."""

    bootstrap_api_key: SecretStr = SecretStr("")
    """The key that `keys ensure` makes: `te_<hex>_<hex>`."""

    secret_encryption_key: SecretStr = SecretStr("")
    """Key ring, for `secrets reencrypt`: the new key first, the old ones behind it."""


Command = Callable[[Database, AdminSettings, argparse.Namespace], Awaitable[None]]


async def ensure_key(database: Database, settings: AdminSettings, _: argparse.Namespace) -> None:
    """Makes sure that TE_BOOTSTRAP_API_KEY exists, with all scopes, in the namespace `default`."""
    await write_key(database, settings.bootstrap_api_key.get_secret_value(), "default", "bootstrap", list(Scope))


async def create_key(database: Database, _: AdminSettings, arguments: argparse.Namespace) -> None:
    """Makes a new key and prints it, this once."""
    key = generate_key()
    scopes = [Scope(scope) for scope in arguments.scope or list(Scope)]
    await write_key(database, key, arguments.namespace, arguments.name, scopes)
    print(key)


async def revoke_key(database: Database, _: AdminSettings, arguments: argparse.Namespace) -> None:
    """Revokes a key; services refuse it within seconds."""
    if not await ApiKeyStore(database).revoke(arguments.namespace, arguments.key_id):
        raise ValueError(f"there is no key '{arguments.key_id}' in namespace '{arguments.namespace}'")


async def list_namespaces(database: Database, _: AdminSettings, __: argparse.Namespace) -> None:
    """Prints each namespace with its retention."""
    for namespace in await RetentionStore(database, _NO_DEFAULT).list_namespaces():
        kept = (
            "as TE_RETENTION_DAYS says"
            if namespace.retention_sec is None
            else f"{namespace.retention_sec / 86_400:g} days"
        )
        print(f"{namespace.namespace}\tkeeps finished work {kept}")


async def set_retention(database: Database, _: AdminSettings, arguments: argparse.Namespace) -> None:
    """Makes a namespace if need be and sets its retention."""
    days = None if arguments.days == "default" else float(arguments.days)
    if days is not None and not 0 < days <= 36_500:
        raise ValueError("--days takes more than 0 and at most 36500, or `default`")
    seconds = None if days is None else round(days * 86_400)
    await RetentionStore(database, _NO_DEFAULT).set_retention(arguments.namespace, seconds)


async def reencrypt_secrets(database: Database, settings: AdminSettings, _: argparse.Namespace) -> None:
    """Encrypts all secrets under the first key of TE_SECRET_ENCRYPTION_KEY; the old keys may go afterwards."""
    keys = KeyRing.parse(settings.secret_encryption_key.get_secret_value())
    changed = await SetupStore(database).reencrypt_secrets(keys)
    print(f"{changed} secrets encrypted under key '{keys.primary_id}'")


async def write_key(database: Database, key: str, namespace: str, name: str, scopes: list[Scope]) -> None:
    """Makes `key` and its namespace, or sets it to these rights. Raises ValueError when it has not the form of a key."""
    parsed = parse_key(key)
    if parsed is None:
        raise ValueError("an API key has the form te_<hex>_<hex>, 4 to 64 and 8 to 128 lowercase hex digits")
    await RetentionStore(database, _NO_DEFAULT).ensure_namespace(namespace)
    await ApiKeyStore(database).ensure(parsed.key_id, parsed.secret_hash, namespace=namespace, name=name, scopes=scopes)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="taskexecutor-admin", description="Administration of Task Executor.")
    areas = parser.add_subparsers(required=True, metavar="AREA")

    def add(
        actions: argparse._SubParsersAction[argparse.ArgumentParser], name: str, command: Command
    ) -> argparse.ArgumentParser:
        action = actions.add_parser(name, help=command.__doc__, description=command.__doc__)
        action.set_defaults(command=command)
        return action

    keys = areas.add_parser("keys", help="API keys").add_subparsers(required=True, metavar="ACTION")
    add(keys, "ensure", ensure_key)
    create = add(keys, "create", create_key)
    create.add_argument("--namespace", default="default")
    create.add_argument("--name", required=True, help="what the key is for")
    create.add_argument("--scope", action="append", choices=[scope.value for scope in Scope], help="default: all")
    revoke = add(keys, "revoke", revoke_key)
    revoke.add_argument("--namespace", default="default")
    revoke.add_argument("key_id", help="the middle part of the key")

    namespaces = areas.add_parser("namespaces", help="namespaces").add_subparsers(required=True, metavar="ACTION")
    add(namespaces, "list", list_namespaces)
    retention = add(namespaces, "set-retention", set_retention)
    retention.add_argument("namespace")
    retention.add_argument(
        "--days", required=True, help="how long finished work is kept; `default`: as TE_RETENTION_DAYS says"
    )

    secrets = areas.add_parser("secrets", help="secrets at rest").add_subparsers(required=True, metavar="ACTION")
    add(secrets, "reencrypt", reencrypt_secrets)
    return parser.parse_args()


async def _run(settings: AdminSettings, arguments: argparse.Namespace) -> None:
    database = Database(settings.database_url, pool_size=1, application_name="taskexecutor-admin")
    await database.open()
    try:
        await arguments.command(database, settings, arguments)
    finally:
        await database.close()


def main() -> int:
    """Entry point of `taskexecutor-admin`."""
    arguments = _arguments()
    try:
        asyncio.run(_run(load(AdminSettings), arguments))
    except (ValueError, TaskExecutorError, DecryptionFailed) as error:
        print(f"taskexecutor-admin: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
