// The keys of [emulator]: cards, the trigger authority, the schedule of faults.
#include "control/emulator_settings.h"
#include "emulator/fault.h"

namespace rodeo::control {
namespace {

using Form = TableDeclaration::Form;

Key integer(std::string name, std::string fallback, std::string help, double minimum, double maximum) {
  return {.name = std::move(name),
          .type = KeyType::integer,
          .fallback = std::move(fallback),
          .help = std::move(help),
          .minimum = minimum,
          .maximum = maximum};
}

Key of_type(KeyType type, std::string name, std::string fallback, std::string help) {
  return {.name = std::move(name), .type = type, .fallback = std::move(fallback), .help = std::move(help)};
}

Key choice(std::string name, std::string fallback, std::string help, std::vector<std::string> choices) {
  return {.name = std::move(name),
          .type = KeyType::choice,
          .fallback = std::move(fallback),
          .help = std::move(help),
          .choices = std::move(choices)};
}

std::vector<Key> card_keys() {
  return {
      {.name = "type",
       .type = KeyType::choice,
       .help = "Kind of card.",
       .choices = {"felix", "cru", "crorc"},
       .required = true},
      of_type(KeyType::text, "name", "card", "Name in reports, messages and fault schedules."),
      {.name = "address",
       .type = KeyType::text,
       .help = "PCI address of endpoint 0, like 0000:3b:00.0; further endpoints are the next functions.",
       .required = true},
      integer("endpoints", "1", "PCI functions of the card: FELIX and CRU 1 or 2, C-RORC 1.", 1, 2),
      integer("serial", "245", "Serial number.", 0, 9999),
      {.name = "temperature",
       .type = KeyType::real,
       .fallback = "48",
       .help = "Temperature of the FPGA, in degrees Celsius.",
       .minimum = -50,
       .maximum = 150},
      of_type(KeyType::text_list, "cpus", "[]", "CPUs that the DMA threads are pinned to, one an endpoint. Left out: any."),
      integer("fifo_triggers", "4096", "Triggers that the card can hold before it is busy.", 1, 1e6),
      integer("links", "24", "Links of an endpoint (FELIX at most 24, CRU 12, C-RORC 6; more than there are: all).", 1, 24),
      of_type(KeyType::text, "link_speed", "0",
              "Wire speed, as \"9.6Gbps\": of a FULL-mode link (12 links with 9.6Gbps, 24 with 4.8Gbps), of an E-link in "
              "GBT mode "
              "(320Mbps), both with 8b/10b; of the user data of a CRU's link (3.2Gbps). What is more waits, and the card is "
              "busy. 0: as "
              "fast as memory takes it."),
      integer("seed", "1", "Seed of provable payload.", 0, 9.2e18),
      // FELIX
      choice("mode", "gbt", "FELIX: firmware mode. full: one E-link a link.", {"gbt", "full"}),
      integer("elinks_per_link", "8", "FELIX, GBT mode: E-links of a link.", 1, 64),
      integer("links_per_group", "1",
              "FELIX, FULL mode: so many neighbours carry the triggers in turn: each its L1 ids modulo this.", 1, 24),
      of_type(KeyType::size, "chunk_size", "40", "FELIX: bytes of a chunk."),
      of_type(KeyType::size, "chunk_size_max", "0", "FELIX: more than chunk_size: sizes vary between the two."),
      of_type(KeyType::size, "block_size", "1KiB", "FELIX: size of a block; more than 1KiB needs trailer_bits 32."),
      choice("trailer_bits", "16", "FELIX: width of chunk trailers.", {"16", "32"}),
      of_type(KeyType::boolean, "ttc_link", "false",
              "FELIX: E-group 7, E-path 3 of link 0 carries the trigger's own packets."),
      integer("detector", "0", "FELIX: detector id in FIDs, from which link ids of the payload follow.", 0, 255),
      integer("connector", "-1",
              "FELIX: connector id in FIDs; endpoint 1 has the next. -1: as many endpoints as stand before it in the file, "
              "as a readout of all of them counts.",
              -1, 65535),
      of_type(KeyType::boolean, "crc", "false", "FELIX: chunks end in a CRC-32."),
      integer("l1id_bits", "32", "FELIX: bits of the L1 id that chunks carry.", 1, 32),
      // CRU, C-RORC
      integer("rdh_version", "7", "CRU, C-RORC: version of the raw data headers.", 6, 7),
      choice("payload", "provable", "CRU: what links send in pages: provable payload, or the data generator's counters.",
             {"provable", "ddg"}),
      of_type(KeyType::size, "page_size", "8KiB", "CRU, C-RORC: largest page, a multiple of 32 bytes."),
      of_type(KeyType::size, "frame_size", "64KiB",
              "CRU, C-RORC: payload of a heartbeat frame of one link, a multiple of 32 bytes; it goes over as many pages as "
              "it takes."),
      integer("first_orbit", "4096", "CRU, C-RORC: orbit of the start of run.", 0, 4294967295.0),
      choice("overflow", "drop",
             "CRU with a trigger rate: what happens to frames that find no superpage. drop: lost and counted, as CRUs do. "
             "busy: triggers wait.",
             {"drop", "busy"}),
      of_type(KeyType::duration, "flush", "1ms", "FELIX: open blocks are sent after so long without a trigger."),
  };
}

std::vector<std::string> fault_names() {
  std::vector<std::string> names;
  for (const auto& info : emulator::fault_infos()) names.emplace_back(info.name);
  return names;
}

std::vector<Key> trigger_keys() {
  return {
      {.name = "rate",
       .type = KeyType::rate,
       .fallback = "0",
       .help = "Offered triggers. 0: whenever every card has room.",
       .minimum = 0,
       .maximum = 1e9},
      choice("spacing", "random", "Distances between offered triggers.", {"random", "periodic"}),
      of_type(KeyType::duration, "simple_dead_time", "0ns", "After each accepted trigger, so long none is."),
      integer("bucket_triggers", "0",
              "Complex dead time, a leaky bucket: so many triggers fit into it, a trigger that does not is vetoed. 0: none.",
              0, 1e6),
      of_type(KeyType::duration, "bucket_period", "0ns", "One trigger leaks out of the bucket each so often."),
      of_type(KeyType::duration, "ecr_period", "0s", "Event counter reset each so often. 0s: never."),
      integer("ecr_triggers", "0", "Event counter reset after so many accepted triggers. 0: never.", 0, 16777216),
      integer("limit", "0", "Accepted triggers after which there are no more. 0: no limit.", 0, 9e15),
      integer(
          "wait_for", "1",
          "Functions, of this process and of those that follow it, that must be ready for data: with fewer, triggers are "
          "held, so that all begin and end with the same one. 0: as many as this process has.",
          0, 1000),
      integer("seed", "1", "Seed of random spacing.", 0, 9.2e18),
      of_type(
          KeyType::text, "serve", "",
          "Serve these triggers to other emulator processes: a name (a Unix socket in the runtime directory), or HOST:PORT "
          "(TCP). Empty: to nobody."),
      of_type(
          KeyType::text, "follow", "",
          "Follow the triggers that another emulator process serves there, instead of assigning any. Empty: this process "
          "assigns."),
      of_type(KeyType::text, "system", "", "Name of the system: authority and followers must have the same."),
      of_type(KeyType::duration, "follower_timeout", "5s",
              "A follower from which nothing comes is busy; after so long it is dropped."),
  };
}

}  // namespace

std::vector<TableDeclaration> emulator_tables() {
  return {
      {.path = "emulator",
       .help = "Emulated cards: PCI functions as a process, for `rodeo emulate`.",
       .keys =
           {of_type(KeyType::text, "name", "emulator", "Name of the process: names its control socket."),
            choice(
                "idle", "sleep",
                "What threads do that have nothing to do. spin: lowest latency, a core for each DMA thread and each server.",
                {"sleep", "yield", "spin"}),
            of_type(
                KeyType::path, "directory", "",
                "Where sockets and locks of the cards lie. Empty: cards/ in the runtime directory, where drivers look.")},
       .optional = true},
      {.path = "emulator.trigger",
       .help = "The trigger authority: it assigns L1 ids to offered triggers that busy and dead time let pass, and all "
               "cards of the process, and of those that follow it, get them.",
       .keys = trigger_keys()},
      {.path = "emulator.card", .help = "One emulated card.", .keys = card_keys(), .form = Form::array},
      {.path = "emulator.fault",
       .help = "A fault by schedule.",
       .keys = {{.name = "kind",
                 .type = KeyType::choice,
                 .help = "What happens. FELIX has no bad_packet_counter and size_index_mismatch, a C-RORC no temperature.",
                 .choices = fault_names(),
                 .required = true},
                {.name = "card",
                 .type = KeyType::text,
                 .help = "Name of the card, or address of the function.",
                 .required = true},
                integer("endpoint", "0", "Endpoint of the card.", 0, 1),
                integer("link", "0", "Link, where the fault has one, of those that the card has.", 0, 31),
                of_type(KeyType::duration, "at", "0s", "Time after the start."),
                of_type(KeyType::duration, "every", "0s", "Again each so often, at least 1ms. 0s: once."),
                of_type(KeyType::duration, "duration", "0s",
                        "Of link_down, stuck_fifo and removal: it ends after so long. 0s: it stays."),
                {.name = "value",
                 .type = KeyType::real,
                 .fallback = "95",
                 .help = "Degrees Celsius, of temperature.",
                 .minimum = -50,
                 .maximum = 150}},
       .form = Form::array},
  };
}

}  // namespace rodeo::control
