#include "cli/codes.h"

#include <algorithm>
#include <array>

namespace rodeo::cli {

namespace {

using enum ExitCode;

// Sorted by code; a test compares the table with the codes that the sources use.
constexpr auto kCodes = std::to_array<ErrorCode>({
    {"base.bad_bit_rate", usage,
     "A bit rate could not be read. Write a number and bps, kbps, Mbps, Gbps or Tbps (or bit/s and so on), "
     "for example 25Gbps. Prefixes are decimal. Bytes per second are not accepted: 1 Gbps is 125 MB/s."},
    {"base.bad_component", failed,
     "A library registers a component whose name or keys are malformed. Names and keys are snake_case: a "
     "small letter, then small letters, digits and _. A component declares each key once, and never `type`."},
    {"base.bad_duration", usage,
     "A duration could not be read. Write a number and ns, us, ms, s, min, h or d, for example 10ms. The unit "
     "is required, because nobody can tell what a bare 10 was meant to be."},
    {"base.bad_rate", usage,
     "A rate could not be read. Write a number in hertz, or with kHz, MHz or GHz, for example 100kHz."},
    {"base.bad_size", usage,
     "A size could not be read. KiB, MiB, GiB and TiB count in 1024s; k, kB, MB, GB and TB in 1000s; a bare number "
     "is bytes in a file, and needs its unit on the command line. For example 2MiB, 5MB or 512k."},
    {"base.component_failed", failed,
     "A component (input, builder, consumer, ...) could not be made with the settings it was given. The "
     "message repeats what the component said; its keys are shown by `rodeo plugin list` and `rodeo explain`."},
    {"base.duplicate_component", invalid_configuration,
     "Two libraries register a component of one kind under one name. Only one of them can "
     "be loaded: take the other out of `plugins`, or rename its component and rebuild it."},
    {"base.memory", invalid_configuration,
     "Memory could not be had: the arena that a component asked for is larger than what the machine has free. Lower the "
     "number of "
     "links, the window or the buffer sizes, or see `rodeo doctor` for huge pages and limits."},
    {"base.not_a_plugin", invalid_configuration,
     "A library was found under the name of a plug-in, but it does not export rodeo_plugin_abi "
     "and rodeo_plugin_register. A plug-in defines both with RODEO_PLUGIN(registry) { ... }."},
    {"base.plugin_abi", invalid_configuration,
     "A plug-in was built against headers of another plug-in ABI. Nothing of it was called. Rebuild "
     "it against the headers of the Rodeo that loads it."},
    {"base.plugin_crashed", failed,
     "The code of a plug-in, or a library function that it called, was running when a fatal signal ended the process: "
     "usually "
     "it read or wrote outside of a chunk. `rodeo plugin test` tries a plug-in on a recording, alone; under a debugger "
     "the signal shows the line. Never trust a length: chunks come as the link delivers them."},
    {"base.plugin_not_found", invalid_configuration,
     "A plug-in library was not found. A name is looked for as libNAME.so in RODEO_PLUGIN_PATH, "
     "beside the configuration, in the installed lib/rodeo/plugins and beside the command; what contains a / is a path."},
    {"base.plugin_unloadable", invalid_configuration,
     "The dynamic linker refused a plug-in library; its own words are in the message. Usually a "
     "library that the plug-in needs is missing (see `ldd`), or it was built for another machine."},
    {"base.process", failed,
     "A process could not be made, or could not become the program that it should; the message has the system's reason."},
    {"base.registration_threw", failed,
     "The registration function of a plug-in threw an exception. Nothing that the plug-in had registered until "
     "then remains."},
    {"base.resources", failed,
     "The system did not give the process what it asked for: a descriptor (`ulimit -n`), memory to map (`ulimit -v`), a "
     "socket. "
     "The message has its reason; raise the limit, or end other programs."},
    {"base.runtime_dir", failed,
     "The runtime directory, where control sockets and locks live, cannot be used. It must exist, be yours and be closed to "
     "others; "
     "XDG_RUNTIME_DIR names its parent."},
    {"base.socket", unreachable,
     "A Unix socket could not be connected to, or no socket can have such a long path (107 bytes are the most; set a "
     "shorter "
     "RODEO_RUNTIME_DIR); the message has the system's reason. For an emulated card, see that `rodeo emulate` runs as the "
     "same user."},
    {"base.unknown_component", invalid_configuration,
     "No library that is loaded registers a component of this name. `rodeo plugin list` shows what "
     "there is; components of plug-ins are there once the configuration names the plug-in."},
    {"card.all_ones", unreachable,
     "The card's registers read as all ones, which is what a bus reads where nothing answers: the card has lost its power "
     "or "
     "has left the bus. `rodeo card reset` may wake it."},
    {"card.ambiguous", usage,
     "A name fits more than one card. Two cards that report the same serial number can be told apart by their PCI "
     "addresses."},
    {"card.bad_access", usage,
     "A register access was outside its BAR, not aligned to its size, or to a region that the card does not have or does "
     "not let be written. Nothing was done."},
    {"card.bad_address", usage,
     "A card's address could not be read. Write bus:device.function in hexadecimal, with or without the domain, for example "
     "3b:00.0 or 0000:3b:00.0."},
    {"card.bad_configuration", invalid_configuration,
     "A setting of a card's configuration has a value that it cannot have, or that does not go with another. The message "
     "names it."},
    {"card.bad_dma", usage,
     "A DMA channel was asked for something that the card does not have: a channel, a data source, a page or superpage "
     "size. The message says what it has."},
    {"card.bad_firmware_table", invalid_configuration,
     "A local addition to the table of firmware is not a hash and a name."},
    {"card.bad_id", usage,
     "A card is named by its PCI address (3b:00.0 or 0000:3b:00.0), its place in the list of cards (#2), or its serial "
     "number and endpoint (0233:1)."},
    {"card.bad_numa", usage,
     "Readers of a card run on the CPUs of its NUMA node (card), anywhere (off), or on a node's that is named by its "
     "number. `lscpu` lists the "
     "nodes of this machine."},
    {"card.bad_setting", usage, "A value is outside of what the card takes; the message has both. Nothing was done."},
    {"card.bench", failed, "The processes of a bench could not be made, or did not all come; the message says how many."},
    {"card.closed", refused, "The DMA channel was closed by the program that had it. Open it again."},
    {"card.ddl", failed,
     "The link answered something else than the status that was asked for. Ask again; if it stays so, reset the SIU."},
    {"card.dma_memory", failed,
     "Memory cannot be given to the card as it is: an emulated card needs a file behind it (memfd, hugetlbfs, /dev/shm), "
     "and every card whole 4 KiB pages; or there is not as much of it as was asked for."},
    {"card.driver", failed,
     "A real card is not with a driver that hands it to programs, or that driver refuses. The message has the commands that "
     "give it to vfio-pci."},
    {"card.firmware", refused,
     "The card runs firmware that this driver does not know, so what it would do is not certain. Add its hash to the "
     "firmware table, or bypass the check."},
    {"card.flash", not_verified,
     "The flash chip reports failure, or does not hold what was written. Write again before the card is switched off."},
    {"card.forked", refused,
     "A process that was forked used a card that its parent had opened. What is the parent's stays the parent's: open the "
     "card in the child."},
    {"card.gone", unreachable,
     "The card's process is not there, or it hung up. `rodeo emulate` starts emulated cards; a real card that is gone was "
     "taken from its driver."},
    {"card.held", refused,
     "A card, its IOMMU group or the keeper's place is held by another process. See `rodeo card keep --status`."},
    {"card.huge_pages", failed,
     "Huge pages could not be set aside: it needs root, a size that the kernel offers, and memory that is not fragmented."},
    {"card.huge_pages_memory", refused,
     "More huge pages are asked for than the NUMA node has memory for, with what the rest of the system needs. Nothing was "
     "set aside."},
    {"card.i2c", failed,
     "A chip on one of the card's I2C buses did not answer. It may not be fitted, or the bus hangs, which a power cycle "
     "ends."},
    {"card.interrupt", failed,
     "An interrupt of a card cannot be had: the card has fewer, or the kernel refused; the message says which."},
    {"card.interrupted", failed, "The work was interrupted; what had been done is in the message or the report."},
    {"card.keeper", failed,
     "The keeper, which holds real cards open for all programs, cannot be started or reached, or speaks another version. "
     "`rodeo card keep --status` asks it; keeper.log beside its socket has what it said."},
    {"card.link_down", failed,
     "The link is down, so that nobody at its other end can be asked. Check the fibre and the front end."},
    {"card.lock_file", failed, "The file whose locks say who owns a card's DMA channels cannot be opened or locked."},
    {"card.locked", refused,
     "Another process owns the DMA channel or is changing the card's configuration. A lock ends with its process, however "
     "that ends."},
    {"card.map", failed,
     "The system refused to map a part of the card's memory, or to make the descriptor for an interrupt; its own words are "
     "in the message."},
    {"card.memlock", failed,
     "Memory for a card has to be locked, and the keeper may not lock as much. Run the keeper as root, or raise its limit "
     "of locked memory."},
    {"card.misbehaved", failed,
     "The card broke the rules of its DMA: a count, index, size or position that cannot be. Nothing that it said was used; "
     "the cause has its own counter. Stop the channel and reset the card."},
    {"card.no_answer", unreachable,
     "The front-end link did not answer a command in time. `rodeo card status` shows whether it is up."},
    {"card.no_data", unreachable,
     "The card answers, but nothing arrived for so long. See that links are enabled and triggers come."},
    {"card.no_iommu", failed,
     "VFIO needs an IOMMU, which keeps a card to the memory that it was given. Switch it on in the firmware and on the "
     "kernel's command line; `rodeo doctor` shows whether it is on."},
    {"card.no_links", refused,
     "No link of the card is enabled, so a start would bring no data. Enable links in its configuration."},
    {"card.no_region", usage, "The card has no such BAR: a CRU has 0 and 2, a C-RORC 0 to 5, a FELIX card 0 to 2."},
    {"card.no_user_logic", refused, "The firmware of the card has no user logic."},
    {"card.not_applied", failed,
     "After a configuration was written, some settings of the card still have other values. The first one is named."},
    {"card.not_contiguous", failed,
     "Without an IOMMU a card sees physical memory, which is contiguous within huge pages alone. Set huge pages aside; "
     "`rodeo doctor` shows how many there are."},
    {"card.not_drained", refused,
     "The ready queue still holds superpages of the last run. Read them before the next start."},
    {"card.not_found", unreachable, "No card answers to this name. The message lists what there is."},
    {"card.not_stopped", refused, "A DMA channel can be reset only while it is stopped."},
    {"card.permission", failed,
     "The system does not let this user at a card's files or at the keeper's socket. The message says whom it lets."},
    {"card.protocol", failed,
     "The card's process sent an answer that the vfio-user protocol does not know. The connection was given up."},
    {"card.read_only", refused,
     "The register is declared as one that can only be read, so writing it is most likely a mistake. --force writes "
     "it, in programs the argument force."},
    {"card.refused", failed, "The card's process refused a request; the reason is in the message."},
    {"card.reset", failed, "A card cannot be reset: it has no reset of its own, or another program is resetting it."},
    {"card.timeout", unreachable, "The card did not answer in time. Nothing waits for a card without a limit."},
    {"card.unknown_order", unreachable,
     "#N is a place in the list of cards, which is in the order of their types; while a card does not answer, its type and "
     "so the "
     "places of the others are not known. Name the card by its PCI address or serial number."},
    {"card.unknown_register", usage,
     "The card has no register of this name; `rodeo card reg list --id ID` shows the names. Byte addresses work too, with "
     "--bar."},
    {"card.unknown_type", failed, "The function's PCI id is that of no readout card which is known here."},
    {"card.unusable", failed, "The function was found, but it cannot be used; the message says what stands in the way."},
    {"card.wrong_type", usage, "The verb is for another type of card. `rodeo card list` shows which card is which."},
    {"cli.bad_value", usage, "The value of an option could not be used; the message says what was expected."},
    {"cli.exists", refused, "What is to be written is there already, and is not written over."},
    {"cli.figures", failed,
     "Figures could not be measured or drawn; the message says what is missing. Drawing needs the script that comes with "
     "the command and a "
     "Python with matplotlib: that of .venv, which tools/setup makes, or one that RODEO_PYTHON names."},
    {"cli.missing_verb", usage, "The command needs a verb; its --help lists them."},
    {"cli.output", failed, "What was to be printed could not be written, for example because the disk is full."},
    {"cli.program", failed,
     "Another program that the command needs could not be started; the system's reason is in the message."},
    {"cli.python", failed,
     "A verb that is done in Python cannot be: there is no interpreter, it lacks a package, or Rodeo's own modules were not "
     "built. "
     "`tools/setup` makes .venv with everything; RODEO_PYTHON names another interpreter."},
    {"cli.unexpected", failed,
     "Something failed that no message was foreseen for. The text is that of the exception; please report it with the "
     "command line."},
    {"cli.unknown_name", usage,
     "`rodeo explain` knows keys of the configuration (readout.builder.timeout), tables (readout.builder), error codes "
     "(config.unknown_key), counters (late), conditions of a run (INCOMPLETE) and what limits one (builder). Counters of "
     "plug-ins are explained by their authors."},
    {"cli.unknown_verb", usage, "There is no such verb; --help lists those there are."},
    {"cli.usage", usage, "The command line does not fit the command; its --help shows examples and options."},
    {"config.bad_choice", invalid_configuration, "A key that takes one of a few words has another. The message lists them."},
    {"config.bad_default", invalid_configuration,
     "A component declares a default that does not fit its own type or range. This is a mistake in the component, not in "
     "the configuration."},
    {"config.bad_override", usage,
     "An override on the command line is not KEY=VALUE. Write it like --set readout.builder.timeout=20ms; elements of "
     "arrays take a position: readout.rob[0].source_id=0x00610001."},
    {"config.bad_value", invalid_configuration,
     "A quantity or an identifier could not be read; the message says why and how to write it."},
    {"config.missing_key", invalid_configuration, "A key that has no default is not given."},
    {"config.out_of_range", invalid_configuration,
     "A number lies outside of what its key allows; the message has the range."},
    {"config.syntax", invalid_configuration,
     "The file is not TOML: a bracket or quote is missing, or a key or table comes twice. The place is that of the first "
     "character that cannot be."},
    {"config.unknown_key", invalid_configuration,
     "A key or table is not known. Keys are never ignored, because a misspelt one would silently leave its default in "
     "force. Keys of a component are known only in a table of its `type`."},
    {"config.unreadable", invalid_configuration,
     "The configuration file could not be read; the message has the system's reason."},
    {"config.wrong_type", invalid_configuration,
     "A value has another type than its key takes. Quantities with a unit are texts, in quotes: timeout = \"10ms\"."},
    {"control.bad_json", failed,
     "What should be JSON is not: a file, or a line on a control socket. The place is line:column. Also refused are numbers "
     "that no "
     "double holds, such as 1e400, and values nested more than 100 deep."},
    {"control.emulator", failed,
     "The process with the emulated cards could not be started, or ended at once; what it said stands in the message."},
    {"control.failed", failed,
     "A running process could not answer a request on its control socket, for the reason given; it goes on. Please report "
     "it."},
    {"control.http", failed,
     "The metrics endpoint cannot listen at the address in readout.metrics.listen. Write an IP address of this host and a "
     "free port, for example "
     "127.0.0.1:9464; port 0 takes one that is free."},
    {"control.http_client", unreachable,
     "An HTTP server could not be asked; the message has the reason. Addresses are http://HOST:PORT, without TLS."},
    {"control.name_taken", refused,
     "Another process runs under this name. Give this one another `name`, or end the other first."},
    {"control.nothing_to_try", failed,
     "`rodeo plugin test` runs extractors and checkers, and the plug-in registers neither. See `rodeo plugin list LIB`."},
    {"control.prometheus", failed,
     "A Prometheus server refused a query, or what answered is no Prometheus. Try the query in the server's own page."},
    {"control.unknown_command", refused,
     "A readout was asked for something that it does not know on its control socket; docs/protocols/control.md lists what "
     "it knows."},
    {"control.unreachable", unreachable,
     "Nobody answers on a control socket. Check that the process runs on this host, as the same user, under this name."},
    {"control.which_emulator", usage, "Several emulators run on this host as this user. Say which one with --name."},
    {"control.which_readout", usage, "Several readouts run on this host as this user. Say which one with --name."},
    {"data.damaged", failed,
     "An event file is damaged at the place named, and what follows cannot be read in order. `rodeo data recover` saves "
     "every whole "
     "event of it; `rodeo data verify` lists what is wrong."},
    {"data.empty", failed, "The file has no bytes: its writer was stopped before the first byte reached the disk."},
    {"data.header", failed,
     "The records at the start of an event file cannot be read. The events may be whole all the same: `rodeo data recover` "
     "saves them."},
    {"data.no_event", failed,
     "No event was found: none of the number or L1 id asked for (`rodeo data list` shows those there are), or none that is "
     "whole."},
    {"data.no_page", failed,
     "No page of a dump has the number or orbit asked for: `rodeo data list` shows links and orbits. What a CRU's internal "
     "generator sends has no headers, so that there are no pages to show."},
    {"data.recording", usage,
     "The verb works on event files; the file is a recording of FELIX blocks, or a dump of superpages."},
    {"data.unknown_kind", failed,
     "The first bytes are those of no event file (aa aa 34 12), of no recording of FELIX blocks (marker 0xABCD, 0xABCE or "
     "0xC0CE "
     "and so on in the third and fourth byte) and of no dump of superpages (06 40 or 07 40, the begin of an RDH)."},
    {"data.zeros", failed,
     "The file starts with zeros: its space was reserved but never written, or the disk lost what was written. `rodeo data "
     "recover` "
     "finds whole events further on, if there are any."},
    {"demo.directory", failed,
     "The demo keeps its files under $XDG_CACHE_HOME/rodeo/demo (else ~/.cache/rodeo/demo) and cannot make a directory "
     "there. Set XDG_CACHE_HOME to a "
     "directory that you may write to."},
    {"emulator.address_taken", refused,
     "Another emulator serves a card at this PCI address. End it, or give one of the two another address."},
    {"emulator.bad_address", invalid_configuration,
     "The PCI address of an emulated card could not be read, or leaves no room for its endpoints."},
    {"emulator.bad_card", invalid_configuration,
     "The settings of an emulated card do not fit together; the message says which."},
    {"emulator.bad_fault", invalid_configuration,
     "A scheduled fault names a card, endpoint or link that the configuration does not have, or a kind or duration that "
     "there is not on such "
     "a card, so it would never happen."},
    {"emulator.bad_trigger", invalid_configuration,
     "The keys of emulator.trigger do not fit together; the message says which. A process either assigns triggers, and may "
     "serve them, or follows."},
    {"emulator.no_such_card", refused,
     "An emulator was asked about a card that it does not have; `rodeo emulate status` lists its cards."},
    {"emulator.no_such_fault", refused,
     "A fault is not known, or this type of card does not have it, or the card has no such link; `rodeo emulate fault "
     "--help` lists the faults."},
    {"emulator.trigger_address", invalid_configuration,
     "Where a trigger authority is served is a name, for a Unix socket in the runtime directory, or HOST:PORT."},
    {"emulator.trigger_refused", refused,
     "The trigger authority does not take this process as a follower: another version of the protocol, another system or "
     "seed, or a "
     "name that another follower has."},
    {"emulator.trigger_socket", unreachable,
     "The socket of the trigger authority could not be made or reached; the message has the system's reason."},
    {"emulator.trigger_taken", refused, "Another process serves triggers under this name, or listens on this port."},
    {"file.exists", refused,
     "A file of the final name is there already, and a closed file is never written over. Move it away, or change the run "
     "number or the directory."},
    {"file.map", failed, "A file could not be mapped into memory; the message has the system's reason."},
    {"file.not_regular", usage,
     "A regular file was expected, but the name is that of a directory, a pipe, a socket or a device."},
    {"file.open", failed, "A file could not be opened; the message has the system's reason."},
    {"file.shrunk", failed,
     "A file that is read in place was cut short by another program meanwhile, or its disk failed. What was read of it is "
     "not "
     "used; a run that plays it ends, with its files closed."},
    {"file.write", failed,
     "A file could not be written; the message has the system's reason. A full disk ends a run in order: files are closed "
     "and readable."},
    {"formats.block_decoder", invalid_configuration,
     "The settings of a FELIX block decoder cannot be: block size, trailer width or links are out of range."},
    {"formats.empty_recording", failed, "A recording of FELIX blocks has no byte in it."},
    {"formats.fid", usage,
     "A FELIX identifier could not be read. Write it like 0x1000000000540000, or as a range 0x1000000000540000+24 of "
     "consecutive E-links."},
    {"formats.not_a_recording", failed,
     "A file does not begin with a FELIX block: bytes 2 and 3 of a block hold one of the known markers."},
    {"formats.rdh_options", invalid_configuration,
     "RDH pages cannot be grouped as asked: a frame of zero orbits or bytes, or a link named twice. The message says "
     "which."},
    {"formats.short_recording", failed,
     "A recording of FELIX blocks is shorter than one block: it was cut off, or it is something else."},
    {"formats.zero_recording", failed,
     "A file that should be a recording of FELIX blocks starts with nothing but zeros: space was reserved for it and never "
     "written."},
    {"network.agent", failed,
     "An agent of the laboratory, on this machine or on a host of the list, could not be started, ended, or met what cannot "
     "be. The message "
     "names the host; its own words on stderr are above."},
    {"network.agent_silent", unreachable,
     "An agent or a switch driver of the laboratory does not answer. Try the command of its host by hand: `COMMAND rodeo "
     "net lab-agent` "
     "answers `hello`."},
    {"network.bad_mtu", usage,
     "An MTU cannot carry TCP over IPv4: it is below 576 bytes, which every host takes, or above what a packet can be."},
    {"network.bad_sequence", usage,
     "A sequence of events cannot be summed up: a line is no start time in seconds with an optional size and port, a port "
     "is "
     "not there, or there are too many events. The message names the line."},
    {"network.bad_setting", usage,
     "A setting of a network could not be read, or is none of the words that it may be. The message names it and what it "
     "takes."},
    {"network.driver", failed,
     "The driver of the switch under test refused something or could not do it; the message has its words. "
     "docs/network-laboratory.md says what laboratory and driver say to each other."},
    {"network.failed", failed,
     "A run of a sweep could not be done; the message has the words of the method. What had ended is in the journal."},
    {"network.folder_in_use", refused,
     "Another `rodeo net` writes its results into the same folder, and would mix them with these. Wait for its end, or name "
     "another folder with --out."},
    {"network.hosts", invalid_configuration,
     "The list of hosts is not understood at the line named. Each line has a role (readout or node), an IPv4 address of the "
     "data network, "
     "and the command that reaches the host; without one it is ssh ADDRESS."},
    {"network.interrupted", partial,
     "The laboratory was interrupted before a run had ended. Everything it made is gone; runs that had ended are reported."},
    {"network.laboratory", failed,
     "The kernel refused a part of the laboratory's network; the message has its reason. It needs network namespaces, veth, "
     "bridge, tbf, "
     "clsact and eBPF, and the package iproute2."},
    {"network.needs_root", refused,
     "The laboratory on one machine makes network namespaces, links and eBPF programs, which only root may. The laboratory "
     "on hosts "
     "(--hosts) does not need it."},
    {"network.not_proved", not_verified,
     "The buffer that was worked out dropped packets in its proof, or nine tenths of it dropped none. More seeds or longer "
     "runs "
     "give the fit more to go on."},
    {"network.overload", usage,
     "The events asked for are more than a link carries, headers included, so that queues would grow without end. The "
     "message has the rate "
     "that fits."},
    {"network.refused", invalid_configuration,
     "Settings of a sweep or a sizing do not fit together; the message says which."},
    {"network.size", usage,
     "A size, rate, jitter or limit is outside of what a network can have or the simulator can represent. The message says "
     "which "
     "and what is possible."},
    {"network.topology", usage,
     "Readouts, racks, nodes and links do not make a network: for example nodes that cannot be split evenly over the racks, "
     "or more "
     "connections than the simulator can tell apart."},
    {"network.unknown_preset", usage, "There is no preset of that name; the message lists those there are."},
    {"network.unknown_setting", usage,
     "A network has no setting of that name; the names are the keys of [network.topology], [network.traffic], "
     "[network.switch] and [network.simulation] in the configuration reference."},
    {"network.unsupported", usage,
     "The laboratory, a switch or a kernel has no such thing; the message says what there is."},
    {"network.vetoed", failed,
     "Run after run was disturbed by the machine rather than by the network, beyond the rule fixed in "
     "docs/network-laboratory.md, so the "
     "point was not measured. The reasons are in the report."},
    {"network.zero", usage, "A count, size or rate of a network is zero or negative. The message names it."},
    {"readout.bad_generator", invalid_configuration,
     "The settings of the internal data generator do not fit together, or its memory is too small for its links. The "
     "message says which and what "
     "would do; its keys are shown by `rodeo explain`."},
    {"readout.bench", usage, "The numbers that a benchmark was given do not fit together; the message says which."},
    {"readout.bench_mismatch", not_verified,
     "A benchmark verified some of the fragments that it built and found bytes in them that are not those that were sent, "
     "or "
     "fragments without all chunks, or it lost chunks, or read other values from a register than it wrote. A speed at which "
     "data are wrong is no speed: please report it with the command line."},
    {"readout.cannot_write", failed,
     "The file writer cannot make its directory or a file in it. Name a directory that you may write to in `directory`, and "
     "see that nothing "
     "else holds a file of the same run there."},
    {"readout.card_memory", invalid_configuration,
     "The memory of a card input cannot be cut into superpages as asked: it must be four or more of them, and a whole "
     "number."},
    {"readout.card_type", invalid_configuration,
     "The card input reads FELIX and CRU cards; the card that was named is another. `rodeo card list` shows what there is."},
    {"readout.cpus", invalid_configuration, "A list of CPUs holds something that is no CPU number."},
    {"readout.disk_full", failed,
     "The disk that the file writer writes to is full. The run stops, the files that are open are closed whole, and what "
     "came after is counted "
     "as not written. Free space there, or name another directory."},
    {"readout.duplicate_consumer", invalid_configuration,
     "Two consumers have one name. Reports, messages and --set know consumers by their names: give each one of its own."},
    {"readout.duplicate_link", invalid_configuration,
     "A link stands twice in the list of one ROB or in those of two. Every link belongs to one ROB."},
    {"readout.duplicate_output", invalid_configuration,
     "Two consumers of a readout would write files of one name, or serve sampled events under one name. Give one of them "
     "another directory or endpoint."},
    {"readout.duplicate_rob", invalid_configuration,
     "Two ROBs of a readout have the same source id. Fragments could not be told apart."},
    {"readout.l1id_bits", invalid_configuration,
     "An extractor reads more bits of the L1 id than the generator's chunks carry, so that it would take what lies beside "
     "it for a "
     "part of it, or a verifying processor expects another number of bits, so that it would find every chunk wrong."},
    {"readout.link_ids", invalid_configuration,
     "A ROB has a list of link ids (those written into chunk headers) of another length than its list of links."},
    {"readout.link_state", refused, "A link is already removed, or already active."},
    {"readout.no_cards", invalid_configuration,
     "A card input names no card. `cards` lists at least one, as a PCI address, #N or serial:endpoint."},
    {"readout.no_chunks", failed,
     "The blocks of a recording hold no chunk: nothing was connected, or the blocks are all time-outs."},
    {"readout.no_links", invalid_configuration,
     "A ROB lists no links, and the input does not deliver any either. List them in `links`."},
    {"readout.no_rob", invalid_configuration, "A readout needs at least one [[readout.rob]] table."},
    {"readout.no_sampler", unreachable,
     "No event sampler answers. Run a readout with an event_sampler among its consumers, as the same user on this host."},
    {"readout.no_such_link", refused,
     "A running readout was asked about a link that none of its ROBs has. `rodeo readout link list` shows those there are."},
    {"readout.no_trigger_list", invalid_configuration,
     "A builder is told to build from the trigger's own list of L1 ids (`trigger_list = true`), but the input has no TTC "
     "link to read it from. "
     "Use an input that has one, or set trigger_list = false."},
    {"readout.not_in_turn", invalid_configuration,
     "The links of the generator do not bring events as the builder takes them. The GBT builder wants every event from "
     "every "
     "link. The FULL builder takes each event of a group from one of its links, and would count what the others bring as "
     "duplicates, or miss the events of links that are not in the group. Set `groups` of the input and `links_per_group` "
     "of the ROBs to fit."},
    {"readout.not_running", refused,
     "Links are removed and restored while a run goes on. This one is ending: its input has stopped, and what is open is "
     "built "
     "as it is."},
    {"readout.recording_interrupted", partial,
     "A recording of an input that would have ended by itself was interrupted before. What was recorded until then is a "
     "sound "
     "recording of whole blocks, but not the one that was asked for, so it keeps the name with .part behind it."},
    {"readout.recording_links", usage,
     "A recording holds the links of one card, named by their 11-bit numbers in block headers; these links do not fit into "
     "one."},
    {"readout.sample_protocol", failed,
     "What a sampler sent is no sampled event of the version that this command knows. Use command and readout of one "
     "version."},
    {"readout.small_slices", invalid_configuration,
     "The chunks that the input sends do not fit into the slices of the builder, which would cut or drop some of every "
     "event. A slice's first "
     "buffer has room for one chunk of readout.builder.chunk_size bytes from each link of a worker, and "
     "readout.builder.max_extensions more "
     "buffers of that size may follow. Set chunk_size to what the links send; readout.builder.window says how many slices "
     "there are."},
    {"readout.socket", failed,
     "Another readout serves sampled events under this name. Give this one, or its event_sampler, another name."},
    {"readout.start", failed,
     "A part of the readout could not start; what had been started was stopped again. The message has the part's own "
     "words."},
    {"readout.timeout_before_flush", invalid_configuration,
     "An emulated FELIX card sends a block when it is full, or when it is as old as its `flush`. The builder would close "
     "events before that, without "
     "the chunks that wait in such a block. Make readout.builder.timeout longer, or `flush` of the card shorter."},
    {"readout.too_many_links", invalid_configuration,
     "A ROB lists more links than a process can number. Split them over several ROBs or processes."},
    {"readout.unknown_link", invalid_configuration,
     "A ROB lists a link that the input does not deliver, or a command names a link that no ROB has."},
    {"readout.untold_resets", invalid_configuration,
     "The input resets its event counter, and chunks carry so few bits of the L1 id that a reset looks like any jump: L1 "
     "ids would be wrong after it. The trigger's own list tells (readout.builder.trigger_list = true), or 16 bits and "
     "more."},
    {"readout.which_sampler", usage,
     "Several readouts that offer sampled events run on this host as this user. Say which one with --name."},
    {"readout.workers", invalid_configuration,
     "A builder needs at least one worker, and at most as many as its ROB has links: links are split over workers, and each "
     "needs one."},
});

static_assert(std::is_sorted(kCodes.begin(), kCodes.end(), [](const auto& a, const auto& b) { return a.code < b.code; }));

}  // namespace

std::span<const ErrorCode> error_codes() { return kCodes; }

const ErrorCode* find_error_code(std::string_view code) {
  const auto found = std::lower_bound(kCodes.begin(), kCodes.end(), code,
                                      [](const ErrorCode& entry, std::string_view wanted) { return entry.code < wanted; });
  return found != kCodes.end() && found->code == code ? &*found : nullptr;
}

ExitCode exit_code_of(std::string_view code) {
  const ErrorCode* entry = find_error_code(code);
  return entry == nullptr ? failed : entry->exit;
}

}  // namespace rodeo::cli
