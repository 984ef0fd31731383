"""Starts real Apache Kafka brokers (KRaft, one node), or librdkafka's mock cluster where Kafka cannot be had.

Kafka comes from Maven Central through `mvn`, once, into a folder of the user's cache.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Protocol

from confluent_kafka import KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from taskexecutor_local.ports import free_ports
from tests.servers.processes import ServerProcess, wait_until

KAFKA_VERSION = "4.3.0"  # needs Java 17
_JAVA = ("java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
_POM = f"""\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>taskexecutor.tests</groupId>
  <artifactId>kafka</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka_2.13</artifactId>
      <version>{KAFKA_VERSION}</version>
    </dependency>
  </dependencies>
</project>
"""
_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller_port}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://{advertised}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={data}
auto.create.topics.enable=false
broker.heartbeat.interval.ms=100
broker.session.timeout.ms=500
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
"""


class KafkaUnavailable(Exception):
    """Why there is no real Kafka here."""


class Cluster(Protocol):
    """What tests need of a cluster, real or not."""

    bootstrap: str
    is_real: bool
    description: str

    def create_topic(self, name: str, *, partitions: int = 1, **settings: str) -> None:
        """Makes a topic; settings with underscores for dots."""

    def stop(self) -> None:
        """Ends it."""


class Broker(ServerProcess):
    """An Apache Kafka broker on 127.0.0.1 that makes no topics on demand."""

    is_real = True

    def __init__(self, folder: Path, *, advertised: str | None = None) -> None:
        classpath = f"{kafka_jars()}/*"
        self.port, controller_port = free_ports(2)
        self.bootstrap = f"127.0.0.1:{self.port}"
        properties = folder / "server.properties"
        properties.write_text(
            _PROPERTIES.format(
                port=self.port,
                controller_port=controller_port,
                advertised=advertised or self.bootstrap,
                data=folder / "data",
            )
        )
        self._run_once(
            classpath, "kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qk", "-c", str(properties)
        )
        super().__init__([*_JAVA, "-cp", classpath, "kafka.Kafka", str(properties)], folder, self._lists_itself, 60)

    @property
    def description(self) -> str:
        """What it is, how long it took to start and what it weighs."""
        return f"{KAFKA_VERSION} (started in {self.started_in_sec:.1f} s, {self.memory_mb():.0f} MB)"

    def create_topic(self, name: str, *, partitions: int = 1, **settings: str) -> None:
        """Makes a topic; settings with underscores for dots."""
        config = {key.replace("_", "."): value for key, value in settings.items()}
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        admin.create_topics([NewTopic(name, partitions, 1, config=config)])[name].result(20)
        # It is there once the controller knows it. Until the broker leads it, a record that asks for no answer gets lost.
        wait_until(lambda: _is_led(admin, name, partitions), 20, f"nobody leads {name}")

    def _lists_itself(self) -> bool:
        try:
            return bool(
                AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0}).list_topics(timeout=0.5).brokers
            )
        except KafkaException:
            return False

    @staticmethod
    def _run_once(classpath: str, *arguments: str) -> None:
        ran = subprocess.run([*_JAVA, "-cp", classpath, *arguments], capture_output=True, text=True, timeout=60)
        if ran.returncode != 0:
            lines = [line for line in ran.stderr.splitlines() if not line.startswith("SLF4J")]
            raise KafkaUnavailable(f"it does not run on this Java: {lines[0][:200] if lines else ran.returncode}")


def _is_led(admin: AdminClient, topic: str, partitions: int) -> bool:
    ends = {TopicPartition(topic, partition): OffsetSpec.latest() for partition in range(partitions)}
    try:
        for end in admin.list_offsets(ends).values():
            end.result(5)
    except KafkaException:
        return False
    return True


class MockCluster:
    """The cluster inside librdkafka: in memory, makes every topic on demand, with four partitions."""

    is_real = False

    def __init__(self, reason: str) -> None:
        self.description = f"only as librdkafka's mock cluster ({reason})"
        self._owner = Producer({"bootstrap.servers": "mock:1", "test.mock.num.brokers": 1, "log_level": 0})
        brokers = self._owner.list_topics(timeout=10).brokers.values()
        self.bootstrap = ",".join(f"{broker.host}:{broker.port}" for broker in brokers)

    def create_topic(self, name: str, *, partitions: int = 1, **_settings: str) -> None:
        """Topics make themselves."""

    def stop(self) -> None:
        """Ends with its owner."""
        self._owner.close()


def kafka_jars() -> Path:
    """The folder with Kafka's jars, fetched when it is not there yet. Raises KafkaUnavailable."""
    for tool in ("java", "mvn"):
        if shutil.which(tool) is None:
            raise KafkaUnavailable(f"there is no {tool}")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "task-executor"
    jars = cache / f"kafka-{KAFKA_VERSION}"
    if not jars.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        _fetch(jars)
    return jars


def _fetch(jars: Path) -> None:
    """All or nothing, and whoever else fetches at the same time does no harm."""
    with tempfile.TemporaryDirectory(dir=jars.parent) as folder:
        pom = Path(folder) / "pom.xml"
        pom.write_text(_POM)
        target = Path(folder) / "jars"
        options = ["-DincludeScope=runtime", f"-DoutputDirectory={target}"]
        try:
            fetched = subprocess.run(
                ["mvn", "-B", "-q", "-f", str(pom), _COPY, *options], capture_output=True, text=True, timeout=300
            )
        except subprocess.TimeoutExpired:
            raise KafkaUnavailable("Maven did not fetch it within five minutes") from None
        if fetched.returncode != 0 or not target.is_dir():
            lines = (fetched.stdout + fetched.stderr).strip().splitlines()
            raise KafkaUnavailable(f"Maven could not fetch it: {lines[0][:200] if lines else fetched.returncode}")
        try:
            target.rename(jars)
        except OSError:
            if not jars.is_dir():
                raise
