"""`taskexecutor-keys`: API keys from the command line."""

from __future__ import annotations

import argparse
import asyncio
import sys

from pydantic import SecretStr

from taskexecutor_common.api_keys import generate_key, parse_key
from taskexecutor_common.config.settings import DatabaseSettings, load
from taskexecutor_common.errors import Unavailable
from taskexecutor_common.model.setup import Scope
from taskexecutor_common.store.api_keys import ApiKeyStore
from taskexecutor_common.store.database import Database


class KeysSettings(DatabaseSettings):
    """Settings of taskexecutor-keys."""

    bootstrap_api_key: SecretStr = SecretStr("")
    """The key that `ensure` makes: `te_<hex>_<hex>`."""


async def write_key(dsn: str, key: str, namespace: str, name: str, scopes: list[Scope]) -> None:
    """Makes `key`, or sets it to these rights. Raises ValueError when it has not the form of a key."""
    parsed = parse_key(key)
    if parsed is None:
        raise ValueError("an API key has the form te_<hex>_<hex>, 4 to 64 and 8 to 128 lowercase hex digits")
    database = Database(dsn, pool_size=1, application_name="taskexecutor-keys")
    await database.open()
    try:
        await ApiKeyStore(database).ensure(
            parsed.key_id, parsed.secret_hash, namespace=namespace, name=name, scopes=scopes
        )
    finally:
        await database.close()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="taskexecutor-keys", description="API keys of Task Executor.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("ensure", help="make sure that the key in TE_BOOTSTRAP_API_KEY exists, with all scopes")
    create = commands.add_parser("create", help="make a new key and print it, this once")
    create.add_argument("--namespace", default="default")
    create.add_argument("--name", required=True, help="what the key is for")
    create.add_argument("--scope", action="append", choices=[scope.value for scope in Scope], help="default: all")
    return parser.parse_args()


def main() -> int:
    """Entry point of `taskexecutor-keys`."""
    arguments = _arguments()
    settings = load(KeysSettings)
    try:
        if arguments.command == "ensure":
            key = settings.bootstrap_api_key.get_secret_value()
            asyncio.run(write_key(settings.database_url, key, "default", "bootstrap", list(Scope)))
        else:
            key = generate_key()
            scopes = [Scope(scope) for scope in arguments.scope or list(Scope)]
            asyncio.run(write_key(settings.database_url, key, arguments.namespace, arguments.name, scopes))
            print(key)
    except (ValueError, Unavailable) as error:
        print(f"taskexecutor-keys: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
