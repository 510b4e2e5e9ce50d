"""The files in deploy/ say what headrace understands, and their commands work on a real PostgreSQL."""

import configparser
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from headrace.cli.root import application
from headrace.settings import read_settings

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
DRAIN = read_settings({}, environ={}).drain


def documents(path: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(path.read_text()))


def understood(variables: dict[str, str]) -> None:
    """Every HEADRACE_ variable is a setting, with a value that it takes."""
    names = set(re.findall(r"HEADRACE_[A-Z_]+", (DEPLOY.parent / "src" / "headrace" / "settings.py").read_text()))
    ours = {name: value for name, value in variables.items() if name.startswith("HEADRACE_")}
    assert ours
    assert set(ours) <= names
    read_settings({}, environ=ours)


def a_command(words: list[str]) -> None:
    answer = CliRunner().invoke(application, [*words, "--help"])
    assert answer.exit_code == 0, answer.output


def unit() -> configparser.RawConfigParser:
    parser = configparser.RawConfigParser(strict=True, delimiters=("=",), comment_prefixes=("#",))
    parser.optionxform = str  # type: ignore[method-assign,assignment]
    parser.read_string((DEPLOY / "systemd" / "headrace.service").read_text())
    return parser


def test_the_unit_of_systemd():
    service = unit()["Service"]
    assert {"Unit", "Service", "Install"} == set(unit().sections())
    assert float(service["TimeoutStopSec"]) > DRAIN, "running tasks would be killed before they may end"
    assert service["KillMode"] == "mixed"
    assert service["Restart"] == "always"
    for line in (service["ExecStartPre"], service["ExecStart"]):
        program, *words = line.split()
        assert Path(program).name == "headrace"
        a_command(words)
    lines = (DEPLOY / "systemd" / "headrace.env").read_text().splitlines()
    understood(dict(line.split("=", 1) for line in lines if line and not line.startswith("#")))


def test_systemd_itself_understands_the_unit(tmp_path: Path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze on this machine")
    known = tmp_path / "headrace.service"
    known.write_text(
        re.sub(r"=/srv/shop/\S*/headrace ", "=/bin/true ", (DEPLOY / "systemd/headrace.service").read_text())
    )
    checked = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(known)], capture_output=True, text=True, timeout=60, check=False
    )
    complaints = [line for line in checked.stderr.splitlines() if str(known) in line or "headrace.service:" in line]
    assert complaints == []


def test_the_services_of_compose():
    [compose] = documents(DEPLOY / "compose" / "compose.yml")
    services = compose["services"]
    assert set(services) == {"postgres", "schema", "worker"}
    for name, service in services.items():
        assert "image" in service or "build" in service, name
        assert set(service.get("depends_on", {})) <= set(services), name
        for volume in service.get("volumes", ()):
            assert volume.partition(":")[0] in compose["volumes"]
    for name in ("schema", "worker"):
        build = services[name]["build"]
        context = (DEPLOY / "compose" / build["context"]).resolve()
        assert (context / build["dockerfile"]).is_file()
        assert (context / "pyproject.toml").is_file()
        a_command(services[name]["command"])
        understood({key: _filled(value) for key, value in services[name]["environment"].items()})
    assert float(services["worker"]["stop_grace_period"].removesuffix("s")) > DRAIN
    url = _filled(services["worker"]["environment"]["HEADRACE_DATABASE_URL"])
    postgres = {key: _filled(value) for key, value in services["postgres"]["environment"].items()}
    assert url == (
        f"postgresql://{postgres['POSTGRES_USER']}:{postgres['POSTGRES_PASSWORD']}@postgres/{postgres['POSTGRES_DB']}"
    )


def _filled(value: str) -> str:
    """`${NAME:-default}` as Compose reads it where the variable is not set."""
    return re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", value)


def test_what_the_image_copies_is_there():
    root = DEPLOY.parent
    lines = (DEPLOY / "compose" / "Dockerfile").read_text().splitlines()
    copied = [word for line in lines if line.startswith("COPY ") for word in line.split()[1:-1]]
    assert copied
    assert [path for path in copied if not (root / path).exists()] == []
    steps = [line.split()[0] for line in lines if line and line[0].isupper()]
    assert steps[0] == "FROM"
    assert "USER" in steps, "it must not run as root"
    extras = re.findall(r"\.\[([a-z,]+)\]", "\n".join(lines))[0].split(",")
    assert {"postgres"} <= set(extras)


def test_the_manifests_of_kubernetes():
    [kustomization] = documents(DEPLOY / "kubernetes" / "kustomization.yml")
    files = {path.name for path in (DEPLOY / "kubernetes").glob("*.yml")} - {"kustomization.yml"}
    assert set(kustomization["resources"]) == files
    objects = {found["kind"]: found for file in files for found in documents(DEPLOY / "kubernetes" / file)}
    assert all({"apiVersion", "kind", "metadata"} <= set(found) for found in objects.values())
    deployment, secret = objects["Deployment"]["spec"], objects["Secret"]
    pod = deployment["template"]["spec"]
    assert deployment["selector"]["matchLabels"] == deployment["template"]["metadata"]["labels"]
    assert pod["terminationGracePeriodSeconds"] > DRAIN
    volumes = {volume["name"] for volume in pod["volumes"]}
    for container in (*pod["initContainers"], *pod["containers"]):
        a_command(container["args"])
        assert {mount["name"] for mount in container["volumeMounts"]} <= volumes
        variables: dict[str, str] = {}
        for variable in container["env"]:
            if "valueFrom" in variable:
                wanted = variable["valueFrom"]["secretKeyRef"]
                assert wanted["name"] == secret["metadata"]["name"]
                variables[variable["name"]] = secret["stringData"][wanted["key"]]
            else:
                variables[variable["name"]] = variable["value"]
        understood(variables)
    [worker] = pod["containers"]
    ports = {port["name"]: str(port["containerPort"]) for port in worker["ports"]}
    assert worker["readinessProbe"]["httpGet"]["port"] in ports
    assert ports["metrics"] in [variable.get("value") for variable in worker["env"]]


def test_the_commands_of_the_example_work(tmp_path: Path, postgres_url: str):
    """What the containers run, in their order: the schema, then a worker of the example's tasks."""
    shutil.copy(DEPLOY / "compose" / "tasks.py", tmp_path)
    environment = {**os.environ, "HEADRACE_DATABASE_URL": postgres_url}

    def headrace(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "headrace.cli", *words],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    [compose] = documents(DEPLOY / "compose" / "compose.yml")
    assert "schema: none -> " in headrace(*compose["services"]["schema"]["command"])
    task = headrace("enqueue", "tasks:app", "tasks.welcome", "user_id=7").strip()
    headrace(*compose["services"]["worker"]["command"], "--burst")
    assert "hello 7" in headrace("tasks", "show", task)
