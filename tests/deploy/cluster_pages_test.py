"""docs/clusters.md and the pages of deploy/systemd, deploy/container and deploy/kubernetes, command by command as printed there.

    cluster_pages_test.py PACKAGES [systemd|slurm|container|kubernetes ...]

TUNER_FRESH_DEBIAN in the environment: a tar of a fresh Debian 12, which is made if it is not there, and stays.
PACKAGES: the folder that deploy/package.sh filled; the packages are installed in a fresh Debian 12, which systemd-nspawn boots. In it
run the daemon and the worker of deploy/systemd, and a Slurm cluster of one node. Images are built by podman from the Containerfiles,
on the same fresh Debian; pods are played by podman (kubectl_by_podman.py). Everything has a network of its own, without a way out.
"""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from page_commands import Script, commands

SKIPPED = 77
SOURCE = pathlib.Path(__file__).resolve().parents[2]
BEGUN = time.monotonic()
PATHS = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
TOOLS = {"mmdebstrap": "mmdebstrap", "systemd-nspawn": "systemd-container", "podman": "podman", "runc": "runc", "ip": "iproute2"}
INSTALLED = "systemd systemd-sysv dbus procps slurmctld slurmd slurm-client munge"
PARTS = ("systemd", "slurm", "container", "kubernetes")
JOB = {"op": "matmul", "a": [48, 64], "b": [64, 96], "search": "random", "trials": 12, "stop_below": 0,
       "measure": {"min_repeat_ms": 0.05, "repeats": 3}}

# One node that claims 64 cores: `up` of the page asks for 8 workers with 4 cores each, and `scale` for 16.
SLURM_CONF = """ClusterName=farm
SlurmctldHost=farm
SlurmUser=slurm
AuthType=auth/munge
StateSaveLocation=/var/lib/slurm/slurmctld
SlurmdSpoolDir=/var/lib/slurm/slurmd
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
KillWait=20
ReturnToService=1
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
NodeName=farm CPUs=64
PartitionName=batch Nodes=farm Default=YES State=UP
"""


def say(text):
    print(f"{time.monotonic() - BEGUN:6.1f} s  {text}", flush=True)


def check(condition, what):
    if not condition:
        raise AssertionError(what)


def wait_for(what, condition, limit_s=90.0, every_s=0.5):
    end = time.monotonic() + limit_s
    value = None
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(every_s)
    raise AssertionError(f"{what}: not within {limit_s:g} s; last: {value}")


def why_not(packages):
    """Why the test cannot run here; empty: it can."""
    if os.geteuid() != 0:
        return "only root boots a system here"
    missing = [package for tool, package in TOOLS.items() if shutil.which(tool, path=PATHS) is None]
    if not os.path.exists("/usr/libexec/podman/catatonit") and shutil.which("catatonit") is None:
        missing.append("catatonit")
    try:
        import yaml  # noqa: F401 pylint: disable=import-outside-toplevel,unused-import
    except ImportError:
        missing.append("python3-yaml")
    if missing:
        return f"not here: {' '.join(missing)}. Debian: apt-get install {' '.join(missing)}"
    for name in ("tuner", "tuner-worker"):
        if not list(packages.glob(f"{name}_*.deb")):
            return f"{packages} has no {name}_*.deb: deploy/package.sh makes it"
    return ""


class Place:
    """Where commands run: the namespaces of a process."""

    def __init__(self, pid, folder, env, root=None):
        self.folder, self.root = folder, root
        self.enter = ["nsenter", "-t", str(pid), *(["-m", "-u", "-i", "-n", "-p"] if root else ["-m", "-n"])]
        self.env = {"PATH": PATHS, "HOME": "/root", "LANG": "C.UTF-8", "TERM": "dumb", **env}

    def words(self, command, env):
        variables = [f"{name}={value}" for name, value in {**self.env, **env}.items()]
        # A job's text goes in by a variable, so that no shell reads it twice.
        return [*self.enter, "env", "-i", *variables, "bash", "-euc", f"cd {self.folder}\n{command}"]

    def __call__(self, command, limit_s=120.0, may_fail=False, **env):
        done = subprocess.run(self.words(command, env), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=limit_s,
                              check=False)
        if done.returncode != 0 and not may_fail:
            raise AssertionError(f"exit code {done.returncode}: {command}\n{done.stdout}{done.stderr}")
        return done.stdout if not may_fail else done

    def start(self, command, log, **env):
        """A command that goes on, with its output in a file of this machine."""
        with open(log, "ab") as file:
            return subprocess.Popen(self.words("exec " + command, env), stdin=subprocess.DEVNULL, stdout=file, stderr=file)

    def page(self, command):
        say(f"$ {command}")
        text = self(command, limit_s=900)
        if text.strip():
            print("".join(f"           {line}\n" for line in text.strip().splitlines()[-3:]), end="", flush=True)
        return text


class Debian:
    """A fresh Debian 12 in a folder, with the packages, as debian_root.sh makes it."""

    def __init__(self, packages, scratch):
        self.scratch = scratch
        self.nspawn = None
        self.tar = os.environ.get("TUNER_FRESH_DEBIAN") or f"{scratch}/debian.tar"  # as an image's base: before anything is installed
        if os.path.exists(self.tar):
            self.root = scratch / "root"
            self.root.mkdir()
            subprocess.run(["tar", "-C", self.root, "-xpf", self.tar], check=True)
        else:
            self.root = pathlib.Path(self.shell('make_root cluster_pages && echo "$root"').strip().splitlines()[-1])
            subprocess.run(["tar", "-C", self.root, "--exclude=./proc/*", "--exclude=./sys/*", "-cf", self.tar, "."], check=True)
        say(f"a fresh Debian 12 is in {self.root}")
        self.packages = packages

    @staticmethod
    def shell(script):
        """With the functions of debian_root.sh."""
        begin = 'program=cluster_pages keep=1 cache=""\nsource deploy/debian_root.sh\n'
        return subprocess.run(["bash", "-euc", begin + script], cwd=SOURCE, check=True, stdout=subprocess.PIPE, text=True).stdout

    def install(self):
        shutil.copytree(self.packages, self.root / "srv/packages", ignore=lambda _, names: [n for n in names if not n.endswith(".deb")])
        for folder in ("deploy", "docs", "examples"):
            shutil.copytree(SOURCE / folder, self.root / "srv/tuner" / folder, symlinks=True)
        words = (f"export DEBIAN_FRONTEND=noninteractive; apt-get update -q; apt-get install -q -y --no-install-recommends {INSTALLED} "
                 "/srv/packages/tuner_*.deb /srv/packages/tuner-worker_*.deb")
        log = f"{self.scratch}/apt.log"
        self.shell(f"find_sources\nin_root {self.root} / bash -euc '{words}' >{log} 2>&1 || {{ cat {log} >&2; exit 1; }}")
        with open(self.root / "etc/hosts", "a", encoding="utf-8") as hosts:
            hosts.write("127.0.0.1 farm farm.example daemon.example\n")
        (self.root / "etc/hostname").write_text("farm\n", encoding="utf-8")
        say("packages are installed in it")

    def boot(self):
        self.nspawn = subprocess.Popen(["systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--private-network", "--console=pipe",
                                        "--resolv-conf=off", "--timezone=off", "--hostname=farm", "--boot", "--directory", self.root],
                                       stdin=subprocess.DEVNULL, stdout=open(f"{self.scratch}/boot.log", "ab"), stderr=subprocess.STDOUT)
        children = f"/proc/{self.nspawn.pid}/task/{self.nspawn.pid}/children"
        pid = wait_for("a first process", lambda: pathlib.Path(children).read_text(encoding="utf-8").split())[0]
        # Slurm finds no name as long as there is no address but that of the loop.
        subprocess.run(["nsenter", "-t", pid, "-n", "ip", "address", "add", "10.0.0.1/32", "dev", "lo"], check=True)
        place = Place(pid, "/srv/tuner", {}, self.root)
        wait_for("systemd", lambda: "running" in place("systemctl is-system-running --wait", may_fail=True).stdout)
        say("systemd runs in it")
        return place

    def remove(self):
        if self.nspawn is not None:
            self.nspawn.send_signal(signal.SIGRTMIN + 4)  # poweroff
            try:
                self.nspawn.wait(timeout=60)
            except subprocess.TimeoutExpired:
                self.nspawn.kill()
                self.nspawn.wait()
        subprocess.run(["rm", "-rf", "--one-file-system", self.root], check=False)


def page_text(name):
    return (SOURCE / name).read_text(encoding="utf-8")


def workers(place, words):
    text = place(f"{words} --json", may_fail=True)
    return {w["worker"]: w for w in json.loads(text.stdout)} if text.returncode == 0 else {}


# --- deploy/systemd ---

def systemd(farm):
    page = "deploy/systemd/README.md"
    as_tuner = "runuser -u tuner -- env XDG_RUNTIME_DIR=/run/tuner"
    here = "--db /var/lib/tuner/farm.db"

    def health(command):
        check(farm.page(command).strip() == "ready", "the daemon is not ready")
    Script(page, commands(page_text(page), "The daemon"), {f"{as_tuner} tuner health": health}).play(farm.page)

    def listed(command):
        wait_for("the worker", lambda: "gpu1" in farm(command))
        farm.page(command)
    Script(page, commands(page_text(page), "A worker"), {f"{as_tuner} tuner workers": listed}).play(farm.page)

    list_words = f"{as_tuner} tuner workers {here}"

    def value(unit, name):
        return farm(f"systemctl show --property {name} --value {unit}").strip()
    farm(f"echo \"$JOB\" >/run/tuner/job.json; {as_tuner} tuner submit /run/tuner/job.json {here}", limit_s=300, JOB=json.dumps(JOB))
    done = workers(farm, list_words)["gpu1"]["trials_done"]
    check(done == JOB["trials"], f"the worker measured {done} trials of {JOB['trials']}")
    say(f"the worker measured {done} trials")
    # Drained, it is started again; stopped, it ends well.
    farm(f"{as_tuner} tuner admin drain gpu1 {here}")
    wait_for("a start after the drain", lambda: value("tuner-worker@gpu1", "NRestarts") == "1")
    wait_for("the worker again", lambda: "gpu1" in workers(farm, list_words))
    farm("systemctl stop tuner-worker@gpu1")
    check(value("tuner-worker@gpu1", "Result") == "success", "the stopped worker did not end well")
    say("a drained worker was started again; a stopped one ended well")
    # A damaged credentials file: it is not started again.
    farm("sed 's/^daemon: .*/daemon: farm.example:99999/' /etc/tuner/gpu1.credentials >/etc/tuner/wrong.credentials\n"
         "chmod 600 /etc/tuner/wrong.credentials")
    farm("systemctl start tuner-worker@wrong", may_fail=True)
    wait_for("its end", lambda: value("tuner-worker@wrong", "ActiveState") == "failed")
    time.sleep(7)  # RestartSec is 5
    ended = (value("tuner-worker@wrong", "ExecMainStatus"), value("tuner-worker@wrong", "NRestarts"))
    check(ended == ("2", "0"), f"damaged credentials: exit code and starts again are {ended}")
    # The port stays open while the daemon hangs, and the watchdog ends that.
    before = value("tuner-daemon", "MainPID")
    farm(f"kill -STOP {before}")
    begun = time.monotonic()
    wait_for("the watchdog", lambda: value("tuner-daemon", "NRestarts") == "1", limit_s=120)
    seconds = time.monotonic() - begun
    check(45 < seconds < 100, f"the watchdog of 60 s took {seconds:.0f} s")
    ready = f"{as_tuner} tuner health {here}"
    wait_for("the new daemon", lambda: "ready" in farm(ready, may_fail=True).stdout)
    say(f"a daemon that hung was started again after {seconds:.0f} s")
    farm("kill -KILL $(systemctl show --property MainPID --value tuner-daemon)")
    farm("exec 3<>/dev/tcp/127.0.0.1/7070")  # the socket is systemd's
    wait_for("the daemon after a kill", lambda: "ready" in farm(ready, may_fail=True).stdout)
    farm("systemctl stop tuner-daemon.socket tuner-daemon.service")
    check(value("tuner-daemon", "Result") == "success", "the stopped daemon did not end well")


# --- docs/clusters.md: Slurm, and any other scheduler ---

def slurm(farm, debian):
    (debian.root / "etc/slurm").mkdir(parents=True, exist_ok=True)
    (debian.root / "etc/slurm/slurm.conf").write_text(SLURM_CONF, encoding="utf-8")
    farm("install -d -o slurm -g slurm /var/lib/slurm /var/lib/slurm/slurmctld; install -d /var/lib/slurm/slurmd; "
         "systemctl restart munge; systemctl restart slurmctld; systemctl restart slurmd")
    wait_for("an idle node", lambda: "idle" in farm("sinfo --noheader --format %T", may_fail=True).stdout)
    farm("useradd --create-home alice")
    alice = Place(0, "/home/alice", {"HOME": "/home/alice"}, debian.root)
    alice.enter = [*farm.enter, "setpriv", "--reuid=alice", "--regid=alice", "--init-groups"]
    say("slurmctld and slurmd run")

    # The daemon, as docs/farm.md starts one.
    def serve(command):
        alice.start(command, debian.scratch / "serve.log")
        wait_for("the daemon", lambda: alice("tuner health", may_fail=True).returncode == 0)

    farm_page = [c for c in commands(page_text("docs/farm.md"), "Several hosts") if c.startswith("tuner") and "--daemon" not in c]
    Script("docs/farm.md", farm_page, {"tuner serve": serve}).play(alice.page)

    def count(number):
        def there():
            ids = [name for name in workers(alice, "tuner workers --daemon alice.credentials") if name.startswith("nodes.s")]
            return len(ids) == number
        wait_for(f"{number} workers", there, limit_s=240, every_s=2)

    def up(command):
        alice.page(command)
        count(8)

    def status(command):
        rows = wait_for("a line per worker", lambda: re.findall(r"^nodes\.s\d+-\d+-0 .*", alice(command), re.MULTILINE))
        check(len(rows) == 8, f"expected 8 lines, found {rows}")
        alice.page(command)

    def scale(command):
        alice.page(command)
        count(int(command.split()[-1]))

    def follow(command):
        say(f"$ {command}")
        following = alice.start(command, debian.scratch / "follow.log")
        count(0)  # nothing waits: the least that it may have
        alice("echo \"$JOB\" >job.json", JOB=json.dumps({**JOB, "trials": 64}))
        alice("tuner submit job.json --daemon alice.credentials", limit_s=600)
        say("the queue brought workers, and they measured 64 trials")
        count(0)
        farm("kill -INT $(pgrep --uid alice --full 'tuner farm slurm scale --min')")
        check(following.wait(timeout=60) in (0, 130), f"Ctrl-C: exit code {following.returncode}")

    def down(command):
        alice.page("tuner farm slurm scale 2")
        count(2)
        alice.page(command)
        wait_for("an empty queue", lambda: not alice("squeue --noheader").strip(), limit_s=120)
        count(0)
    Script("docs/clusters.md", commands(page_text("docs/clusters.md"), "Slurm"),
           {"tuner farm slurm up": up, "tuner farm slurm status": status, "tuner farm slurm scale 16": scale,
            "tuner farm slurm scale --min": follow, "tuner farm slurm down": down}).play(alice.page)

    def worker(command):
        say(f"$ JOB=7 TASK=3; {command}")
        process = alice.start(command, debian.scratch / "worker.log", JOB="7", TASK="3")
        wait_for("the worker", lambda: "nodes.7-3" in workers(alice, "tuner workers --daemon alice.credentials"))
        farm("kill -TERM $(pgrep --uid alice --exact measure_server)")
        code = process.wait(timeout=60)
        check(code == 0, f"a worker that was told to end ended with {code}")
        alice("sed 's/^daemon:/demon:/' nodes.credentials >damaged.credentials; chmod 600 damaged.credentials")
        damaged = alice(command.replace("nodes.credentials", "damaged.credentials"), may_fail=True, JOB="7", TASK="3").returncode
        check(damaged == 2, f"a damaged credentials file: exit code {damaged}, expected 2")
        # Refused, it goes on trying.
        refused = alice.start(command.replace("nodes.credentials", "alice.credentials"), debian.scratch / "refused.log", JOB="7", TASK="4")
        wait_for("the refusal", lambda: "needs the role work" in (debian.scratch / "refused.log").read_text(encoding="utf-8"))
        time.sleep(2)
        check(refused.poll() is None, f"a worker that was refused ended with {refused.returncode}")
        farm("kill -TERM $(pgrep --uid alice --exact measure_server)")
        check(refused.wait(timeout=60) == 0, f"a refused worker that was told to end ended with {refused.returncode}")
        say("TERM: 0; damaged credentials: 2; refused: it goes on trying")
    Script("docs/clusters.md", commands(page_text("docs/clusters.md"), "Any other scheduler"), {"measure_server": worker}).play(alice.page)


# --- deploy/container, deploy/kubernetes ---

class Podman:
    """podman with storage and settings of its own, in a network of its own but for builds, which install packages."""

    def __init__(self, scratch, packages):
        self.folder = scratch / "podman"
        self.folder.mkdir()
        # runc: crun refuses hosts with both versions of cgroups. Containers share one network, which has no way out.
        (self.folder / "containers.conf").write_text(
            '[containers]\ndefault_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]\nnetns = "host"\n'
            '[engine]\nruntime = "runc"\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\n', encoding="utf-8")
        (self.folder / "storage.conf").write_text(
            f'[storage]\ndriver = "overlay"\ngraphroot = "{self.folder}/graph"\nrunroot = "{self.folder}/run"\n', encoding="utf-8")
        # The page's folder: the repository with its packages.
        self.tree = self.folder / "tree"
        self.tree.mkdir()
        for folder in ("deploy", "docs", "examples"):
            shutil.copytree(SOURCE / folder, self.tree / folder, symlinks=True)
        (self.tree / "build/package/packages").mkdir(parents=True)
        for file in packages.glob("*.deb"):
            shutil.copy(file, self.tree / "build/package/packages")
        (self.folder / "bin").mkdir()
        stand_in = SOURCE / "tests/deploy/kubectl_by_podman.py"
        (self.folder / "bin/kubectl").write_text(f'#!/bin/sh\nexec {sys.executable} -B {stand_in} "$@"\n', encoding="utf-8")
        os.chmod(self.folder / "bin/kubectl", 0o755)
        env = {"CONTAINERS_CONF": f"{self.folder}/containers.conf", "CONTAINERS_STORAGE_CONF": f"{self.folder}/storage.conf",
               "HOME": str(self.folder), "XDG_RUNTIME_DIR": str(self.folder), "KUBE_FOLDER": str(self.folder / "kube"),
               "KUBE_HOSTS": "/etc/hosts", "PATH": f"{self.folder}/bin:{PATHS}"}
        for name in ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"):
            if name in os.environ:
                env[name] = os.environ[name]
        # A mount namespace of its own: what the pages make in /var/lib goes with it. And names of the daemon.
        hosts = self.folder / "hosts"
        hosts.write_text("127.0.0.1 localhost farm.example daemon.example\n", encoding="utf-8")
        for name in ("up", "work"):
            (self.folder / name).mkdir()
        hold = (f"mount -t overlay overlay -o lowerdir=/var/lib,upperdir={self.folder}/up,workdir={self.folder}/work /var/lib\n"
                f"mount --bind {hosts} /etc/hosts\nip link set lo up\necho ready\nexec sleep infinity\n")
        self.holder = subprocess.Popen(["unshare", "--mount", "--net", "--propagation", "private", "bash", "-euc", hold],
                                       stdout=subprocess.PIPE, text=True)
        check(self.holder.stdout.readline() == "ready\n", "no namespaces for podman")
        self.run = Place(self.holder.pid, self.tree, env)
        self.build = Place(self.holder.pid, self.tree, env)
        self.build.enter = ["nsenter", "-t", str(self.holder.pid), "-m"]

    def stop(self):
        self.run("podman pod rm --all --force --time 5; podman rm --all --force --time 5; podman rmi --all --force", may_fail=True,
                 limit_s=300)
        self.holder.kill()
        self.holder.wait()


def submit(run, daemon):
    run(f"echo \"$JOB\" >job.json; podman cp job.json {daemon}:/data/job.json\n"
        f"podman exec {daemon} tuner submit /data/job.json --db /data/farm.db", limit_s=300, JOB=json.dumps(JOB))


def container(podman, debian):
    page = "deploy/container/README.md"
    podman.build(f"podman import {debian.tar} docker.io/library/debian:12", limit_s=300)

    def made(command):  # the packages that this test was given
        say(f"{command}: was run before")

    def listed(command):
        wait_for("the worker", lambda: "box" in podman.run(command))
        podman.run.page(command)
    Script(page, commands(page_text(page)),
           {"deploy/package.sh": made, "podman build": podman.build.page, "podman exec daemon tuner workers": listed}).play(podman.run.page)
    run = podman.run
    for name, user in (("daemon", "10001"), ("worker", "10002")):
        pid = run(f"podman inspect --format '{{{{.State.Pid}}}}' {name}").strip()
        check(os.stat(f"/proc/{pid}").st_uid == int(user), f"the {name} does not run as user {user}")
    submit(run, "daemon")
    done = workers(run, "podman exec daemon tuner workers --db /data/farm.db")["box"]["trials_done"]
    check(done == JOB["trials"], f"the worker measured {done} trials of {JOB['trials']}")
    check(run("podman exec daemon tuner health --db /data/farm.db").strip() == "ready", "the daemon is not ready")
    run("podman stop --time 120 worker daemon", limit_s=300)
    codes = run("podman inspect --format '{{.State.ExitCode}}' worker daemon").split()
    check(codes == ["0", "0"], f"stopped worker and daemon ended with {codes}")
    say(f"the worker measured {done} trials; both ended well")
    # The third image, which no command of the page starts.
    run("podman rm worker daemon")
    words = re.search(r"^#   (podman build .*)$", page_text("deploy/container/builder.Containerfile"), re.MULTILINE).group(1)
    podman.build.page(words)
    run("podman run --rm --entrypoint measure_server tuner-builder --help")


def kubernetes(podman):
    page = "deploy/kubernetes/README.md"
    run = podman.run
    for name in ("daemon", "worker"):  # what stands for pushing them
        run(f"podman tag tuner-{name} tuner-{name}:0.1.0")

    def listed(command):
        wait_for("two workers", lambda: run(command).count("nodes.tuner-workers-cpu-") == 2)
        run.page(command)
    Script(page, commands(page_text(page)), {"kubectl exec tuner-daemon-0 -c daemon -- tuner workers": listed}).play(run.page)
    in_daemon = "podman exec tuner-daemon-0-daemon"
    submit(run, "tuner-daemon-0-daemon")
    found = workers(run, f"{in_daemon} tuner workers --db /data/farm.db")
    check(sum(w["trials_done"] for w in found.values()) == JOB["trials"], f"the workers did not measure the job: {found}")
    locks = run("stat -c '%g %a' /var/lib/tuner-locks; ls /var/lib/tuner-locks")
    check(locks.startswith("10002 "), f"the workers share no locks: {locks}")
    say(f"{len(found)} workers measured {JOB['trials']} trials")


def main():
    packages = pathlib.Path(sys.argv[1]).resolve()
    parts = sys.argv[2:] or list(PARTS)
    unknown = [part for part in parts if part not in PARTS]
    if unknown:
        print(f"expected parts of {' '.join(PARTS)}, found {unknown[0]}", file=sys.stderr)
        return 2
    if why := why_not(packages):
        print(f"skipped: {why}")
        return SKIPPED
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="tuner-cluster-pages-", dir="/var/tmp"))
    debian = podman = None
    try:
        debian = Debian(packages, scratch)
        if {"systemd", "slurm"} & set(parts):
            debian.install()
            farm = debian.boot()
            if "systemd" in parts:
                systemd(farm)
            if "slurm" in parts:
                slurm(farm, debian)
        if {"container", "kubernetes"} & set(parts):
            podman = Podman(scratch, packages)
            container(podman, debian)
            if "kubernetes" in parts:
                kubernetes(podman)
    except (AssertionError, subprocess.SubprocessError, OSError) as error:
        print(f"FAILED: {type(error).__name__}: {error}")
        for log in [*sorted(scratch.glob("*.log")), *(debian.root.glob("var/log/slurm/*.log") if debian is not None else [])]:
            print(f"--- {log.name}\n" + "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-12:]))
        if podman is not None:
            print(podman.run("for name in $(podman ps --all --format '{{.Names}}'); do\n"
                             "  echo \"--- $name\"; podman logs --tail 8 $name 2>&1\ndone", may_fail=True).stdout)
        return 1
    finally:
        if podman is not None:
            podman.stop()
        if debian is not None:
            debian.remove()
        shutil.rmtree(scratch, ignore_errors=True)
    say("every command of the pages did what the pages say")
    return 0


if __name__ == "__main__":
    sys.exit(main())
