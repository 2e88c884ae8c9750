# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
"""commands_of.py EXAMPLES FOLDER: checks the form of the examples, and writes their commands to the folder as they stand, a
shell script for each job, step or container. It ends with 1 and a line where a file is not of the form that its reader wants."""
import pathlib
import shlex
import sys

import yaml

examples, folder = (pathlib.Path(argument) for argument in sys.argv[1:])


def need(condition, what):
    if not condition:
        sys.exit(f"commands_of.py: {what}")


def only(mapping, known, where):
    need(isinstance(mapping, dict), f"{where} is no mapping")
    need(set(mapping) <= set(known), f"{where} has {set(mapping) - set(known)}")
    return mapping


def write(name, lines):
    (folder / name).write_text("\n".join(lines) + "\n")


def documents(name):
    return list(yaml.safe_load_all((examples / name).read_text()))


# https://json.schemastore.org/github-workflow.json; YAML 1.1 reads the key "on" as true.
(workflow,) = documents("ci/github-actions.yml")
only(workflow, ["name", True, "jobs"], "the workflow")
(job,) = workflow["jobs"].values()
only(job, ["runs-on", "container", "permissions", "steps"], "its job")
for step in job["steps"]:
    only(step, ["name", "if", "uses", "with", "run", "working-directory"], "a step")
    need(("uses" in step) != ("run" in step), "a step uses or runs")
    if "run" in step:
        write(f"github-{step['name'].split()[0].lower()}", [step["run"]])

(pipeline,) = documents("ci/gitlab-ci.yml")
(job,) = pipeline.values()
only(job, ["image", "script"], "GitLab's job")
need(all(isinstance(line, str) for line in job["script"]), "GitLab's script is of lines")
write("gitlab", job["script"])

(compose,) = documents("containers/compose.yaml")
only(compose, ["services"], "the compose file")
for name, service in compose["services"].items():
    only(service, ["image", "command", "read_only", "cap_drop", "depends_on"], f"the service {name}")
    need(set(service.get("depends_on", [])) <= set(compose["services"]), f"{name} depends on another service")
    write(f"compose-{name}", [shlex.join(service["command"])])

service, *pods = documents("containers/pods.yaml")
need((service["apiVersion"], service["kind"], service["spec"]["clusterIP"]) == ("v1", "Service", "None"), "a headless service")
# What the standard "restricted" demands of a pod and of its containers.
pod_rights = {"runAsNonRoot": True, "runAsUser": 65534, "seccompProfile": {"type": "RuntimeDefault"}}
container_rights = {"readOnlyRootFilesystem": True, "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
need(any(pod["metadata"].get("labels") == service["spec"]["selector"] for pod in pods), "the service selects a pod")
for pod in pods:
    need((pod["apiVersion"], pod["kind"]) == ("v1", "Pod"), "a pod")
    only(pod["spec"], ["restartPolicy", "securityContext", "containers"], "a pod's specification")
    need(pod["spec"]["securityContext"] == pod_rights, "a pod's rights")
    (container,) = pod["spec"]["containers"]
    only(container, ["name", "image", "imagePullPolicy", "command", "securityContext"], "a container")
    # Without this, a node asks a registry for an image without a tag.
    need(container["imagePullPolicy"] == "IfNotPresent", "a pod takes the image that is there")
    need(container["securityContext"] == container_rights, "a container's rights")
    write(f"pod-{pod['metadata']['name'].removeprefix('rdma-')}", [shlex.join(container["command"])])

(pod,) = documents("containers/exporter-pod.yaml")
need((pod["apiVersion"], pod["kind"]) == ("v1", "Pod"), "the exporter's pod")
only(pod["spec"], ["volumes", "securityContext", "containers"], "the exporter's pod's specification")
need(pod["spec"]["securityContext"] == pod_rights, "the exporter's pod's rights")
for container in pod["spec"]["containers"]:
    only(container, ["name", "image", "command", "args", "volumeMounts", "securityContext"], "a container of the exporter's pod")
    need(container["securityContext"] == container_rights, "the rights of a container of the exporter's pod")
    need({mount["name"] for mount in container["volumeMounts"]} <= {volume["name"] for volume in pod["spec"]["volumes"]}, "a volume of the pod")
    write(f"exporter-pod-{container['name']}", [shlex.join(container.get("command", []) + container.get("args", []))])

(compose,) = documents("containers/exporter-compose.yaml")
only(compose, ["services", "volumes"], "the exporter's compose file")
for name, service in compose["services"].items():
    only(service, ["image", "command", "volumes", "network_mode", "read_only", "cap_drop", "depends_on"], f"the service {name}")
    need({volume.split(":")[0] for volume in service["volumes"]} <= set(compose["volumes"]), f"{name} has another volume")
    write(f"exporter-compose-{name}", [shlex.join(service["command"])])
