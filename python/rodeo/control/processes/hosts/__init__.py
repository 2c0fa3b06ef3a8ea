"""The launchers: each reaches the agent of a host in its own way. Classes of processes name hosts; [[control.host]] names the launcher of a host."""

from rodeo.control.refused import Refused


def hosts_of(system, patience=1.0):
    """Returns {name: Host} for this host and every host named in a class, not opened yet. Refused(control.launcher)."""
    from rodeo.control.processes.hosts.local import LocalHost

    entries = {each.name: each for each in system.hosts}
    hosts = {"local": LocalHost(system.name, system.directory, patience=patience)}
    for name in sorted({member.host for member in system.members} - {"local"}):
        hosts[name] = _host(system, entries.get(name), name, patience)
    return hosts


def _host(system, entry, name, patience):
    # Each agent has its own directory, with the logs, exits and launched processes of its host.
    directory = system.directory / "hosts" / name
    match entry.launcher if entry else None:
        case "local":
            from rodeo.control.processes.hosts.local import LocalHost

            return LocalHost(system.name, directory, name=name, patience=patience)
        case "ssh":
            from rodeo.control.processes.hosts.ssh_host import SshHost

            return SshHost(system.name, directory, name, entry.address, patience=patience)
        case "slurm":
            from rodeo.control.processes.hosts.slurm_host import SlurmHost

            return SlurmHost(system.name, directory, name, entry.address, patience=patience)
    raise Refused(
        "control.launcher",
        f"host {name}: there is no launcher `{entry.launcher if entry else '?'}`",
        "use local, ssh or slurm",
    )
