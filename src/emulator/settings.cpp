#include "emulator/settings.h"

namespace rodeo::emulator {

namespace {

constexpr double kMostSeed = 9.2e18;

}  // namespace

CardKeys::CardKeys() {
  name = "card";
  serial = 245;
  links = 24;
}

const Settings<CardKeys>& card_settings() {
  using K = CardKeys;
  using C = EmulatedCardSettings;
  using F = FelixSourceSettings;
  using R = RdhSourceSettings;
  static const Settings<K> settings{
      setting(&C::type, "type", {{"felix", CardType::felix}, {"cru", CardType::cru}, {"crorc", CardType::crorc}},
              "Kind of card.", true),
      setting(&C::name, "name", "Name in reports, messages and fault schedules."),
      setting(&C::address, "address",
              "PCI address of endpoint 0, like 0000:3b:00.0; further endpoints are the next functions.", {.required = true}),
      setting(&C::endpoints, "endpoints", "PCI functions of the card: FELIX and CRU 1 or 2, C-RORC 1.",
              {.minimum = 1, .maximum = 2}),
      setting(&C::serial, "serial", "Serial number.", {.maximum = 9999}),
      setting(&C::temperature, "temperature", "Temperature of the FPGA, in degrees Celsius.",
              {.minimum = kColdest, .maximum = kHottest}),
      setting(&C::cpus, "cpus", "CPUs to pin the DMA threads to, one per endpoint. Left out: any.", {.maximum = 4095}),
      setting(&C::max_payload, "max_payload", {{"128", 128U}, {"256", 256U}, {"512", 512U}},
              "Max_Payload_Size in bytes, as set by the host. A FELIX whose descriptor asks for longer packets writes "
              "nothing "
              "and counts long_packets."),
      setting(&C::lanes, "lanes", {{"1", 1U}, {"2", 2U}, {"4", 4U}, {"8", 8U}},
              "Lanes to which the PCIe link was trained, of the card's 8."),
      setting(&C::fifo_triggers, "fifo_triggers", "Triggers that the card can hold before it is busy.",
              {.minimum = 1, .maximum = 1e6}),
      setting(&C::links, "links", "Links of an endpoint (FELIX at most 24, CRU 12, C-RORC 6; a larger number means all).",
              {.minimum = 1, .maximum = 24}),
      setting(
          &K::link_speed, "link_speed",
          "Wire speed, as \"9.6Gbps\": of a FULL-mode link (12 links with 9.6Gbps, 24 with 4.8Gbps), of an E-link in GBT "
          "mode "
          "(320Mbps), both "
          "with 8b/10b; of the user data of a CRU's link (3.2Gbps). More data wait, and the card is busy. 0: as fast as "
          "memory takes it."),
      setting(&C::felix,
              {
                  setting(&F::seed, "seed", "Seed of provable payload.", {.maximum = kMostSeed}),
                  setting(&F::full_mode, "mode", {{"gbt", false}, {"full", true}},
                          "FELIX: firmware mode. full: one E-link a link."),
                  setting(&F::elinks_per_link, "elinks_per_link", "FELIX, GBT mode: E-links of a link.",
                          {.minimum = 1, .maximum = 64}),
                  setting(&F::elinks, "elinks",
                          "FELIX: number of E-links of an endpoint that are enabled at the start, those of link 0 first; "
                          "the others exist, but are "
                          "disabled. 0: all.",
                          {.maximum = 1536}),
                  setting(&F::links_per_group, "links_per_group",
                          "FELIX, FULL mode: neighbours that carry the triggers in turn, by L1 id modulo this number.",
                          {.minimum = 1, .maximum = 24}),
                  setting(&F::chunk_bytes, "chunk_size", "FELIX: bytes of a chunk.",
                          {.minimum = 8, .maximum = 1 << 20, .unit = Unit::bytes}),
                  setting(&F::chunk_bytes_max, "chunk_size_max", "FELIX: above chunk_size: sizes vary between the two.",
                          {.maximum = 1 << 20, .unit = Unit::bytes}),
              }),
      setting(&K::block_bytes, "block_size", "FELIX: size of a block; more than 1KiB needs trailer_bits 32.",
              {.minimum = 1024, .maximum = 64 << 10, .unit = Unit::bytes}),
      setting(&K::wide_trailers, "trailer_bits", {{"16", false}, {"32", true}}, "FELIX: width of chunk trailers."),
      setting(
          &C::felix,
          {
              setting(&F::loopback, "loopback",
                      "FELIX: data sent to E-links 62 and 63 (IC and EC) of a link come back on them; both are enabled."),
              setting(&F::from_host_length, "from_host_length_bits",
                      {{"4", formats::FromHostLength::words}, {"5", formats::FromHostLength::bytes}},
                      "FELIX: form of the length in from-host packets. 4: as in register map 4; 5: as in register map 5."),
              setting(&F::ttc_link, "ttc_link", "FELIX: E-group 7, E-path 3 of link 0 sends the trigger's own packets."),
              setting(&F::detector, "detector", "FELIX: detector id in FIDs; link ids of the payload follow from it.",
                      {.maximum = 255}),
          }),
      setting(
          &K::connector, "connector",
          "FELIX: connector id in FIDs; endpoint 1 has the next. -1: the number of endpoints before it in the file, as a "
          "readout of all of "
          "the cards counts.",
          {.maximum = 65535}),
      setting(
          &C::felix,
          {
              setting(&F::crc, "crc", "FELIX: chunks end in a CRC-32."),
              setting(&F::l1id_bits, "l1id_bits", "FELIX: bits of the L1 id that chunks carry.",
                      {.minimum = 1, .maximum = 32}),
              setting(&F::l1id_counter, "l1id_counter",
                      "FELIX: 32: chunks carry a counter of 32 bits without resets. 0: l1id_bits applies.", {.maximum = 32}),
          }),
      setting(&C::rdh,
              {
                  setting(&R::version, "rdh_version", "CRU, C-RORC: version of the raw data headers.",
                          {.minimum = 6, .maximum = 7}),
                  setting(&R::payload, "payload",
                          {{"provable", formats::PagePattern::provable}, {"ddg", formats::PagePattern::ddg}},
                          "CRU: payload of the links: provable, or the data generator's counters."),
                  setting(&R::page_bytes, "page_size", "CRU, C-RORC: largest page, a multiple of 32 bytes.",
                          {.minimum = 96, .maximum = formats::kRdhPageBytes, .unit = Unit::bytes}),
                  setting(&R::frame_bytes, "frame_size",
                          "CRU, C-RORC: payload of a heartbeat frame of one link, a multiple of 32 bytes; it "
                          "takes as many pages "
                          "as needed.",
                          {.maximum = 64 << 20, .unit = Unit::bytes}),
                  setting(&R::first_orbit, "first_orbit",
                          "Orbit of the trigger authority's first trigger, shared by all its CRUs. Without a "
                          "trigger rate, and for a "
                          "C-RORC: orbit of the start of run."),
              }),
      setting(&C::drop, "overflow", {{"drop", true}, {"busy", false}},
              "CRU with a trigger rate: frames without a superpage. drop: they are lost and counted, as "
              "in real CRUs. "
              "busy: triggers wait."),
      setting(&C::flush, "flush",
              "FELIX: age at which an open block is sent, counted from its first byte; keep it well below the time-out of "
              "the readout."),
  };
  return settings;
}

const Settings<EmulatorSettings>& trigger_settings() {
  using E = EmulatorSettings;
  using T = trigger::TriggerSettings;
  static const Settings<E> settings{
      setting(
          &E::trigger,
          {
              setting(&T::rate_hz, "rate", "Offered triggers. 0: a trigger whenever every card has room.",
                      {.minimum = 0, .maximum = 1e9, .unit = Unit::hertz}),
              setting(&T::spacing, "spacing", {{"random", T::Spacing::random}, {"periodic", T::Spacing::periodic}},
                      "Time between offered triggers."),
              setting(&T::simple_dead_time, "simple_dead_time", "Veto time after each accepted trigger."),
              setting(&T::bucket_triggers, "bucket_triggers",
                      "Complex dead time, a leaky bucket of this size in triggers; a trigger that does not fit is "
                      "vetoed. 0: none.",
                      {.maximum = 1e6}),
              setting(&T::bucket_period, "bucket_period", "Time in which one trigger leaks out of the bucket."),
              setting(&T::ecr_period, "ecr_period", "Time between event counter resets. 0s: never."),
              setting(&T::ecr_triggers, "ecr_triggers", "Accepted triggers between event counter resets. 0: never.",
                      {.maximum = 1 << 24}),
              setting(&T::limit, "limit", "Accepted triggers after which there are no more. 0: no limit.",
                      {.maximum = 9e15}),
              setting(&T::wait_for, "wait_for",
                      "Number of functions, here and in followers, that must be ready for data: with fewer, "
                      "triggers are "
                      "held, so that all "
                      "begin and end with the same one. 0: all functions of this process.",
                      {.maximum = 1000}),
              setting(
                  &T::hold, "hold",
                  "Start with triggers held: none is offered until `rodeo emulate release`. Held time is not dead time."),
              setting(&T::seed, "seed", "Seed of random spacing.", {.maximum = kMostSeed}),
              setting(&T::lumi_block, "lumi_block", "Luminosity block of the first trigger."),
              setting(&T::lumi_block_period, "lumi_block_period",
                      "Time after which a new luminosity block begins, with the next trigger. 0s: only on order, by `rodeo "
                      "emulate advance`.",
                      {.minimum = 0}),
              setting(&T::scan_step, "scan_step", "Scan step of the first trigger."),
              setting(&T::scan_step_period, "scan_step_period",
                      "Time after which a new scan step begins, with the next trigger. 0s: only on order.", {.minimum = 0}),
          }),
      setting(
          &E::serve, "serve",
          "Serve these triggers to other emulator processes: a name (a Unix socket in the runtime directory), or HOST:PORT "
          "(TCP). Empty: do "
          "not serve."),
      setting(&E::follow, "follow",
              "Follow the triggers that another emulator process serves at this address. Empty: this process "
              "assigns triggers."),
      setting(&E::secret_file, "secret_file",
              "File with the secret that authority and followers share; only its owner may read it. Required for HOST:PORT "
              "beyond loopback. A Unix socket needs none."),
      setting(&E::system, "system", "Name of the system; must be the same for authority and followers."),
      setting(&E::follower_timeout, "follower_timeout",
              "A silent follower counts as busy; after this time it is dropped. A follower whose connection ends is "
              "dropped at "
              "once.",
              {.minimum = 1e8, .maximum = 3.6e12}),
  };
  return settings;
}

const Settings<FaultKeys>& fault_settings() {
  using S = ScheduledFault;
  static const Settings<FaultKeys> settings = [] {
    std::vector<std::pair<std::string, FaultKind>> kinds;
    for (const FaultInfo& info : fault_infos()) kinds.emplace_back(info.name, info.kind);
    return Settings<FaultKeys>{
        setting(&S::fault, {setting(&Fault::kind, "kind", kinds,
                                    "The fault. FELIX has no bad_packet_counter and size_index_mismatch, a C-RORC no "
                                    "temperature; only FELIX has "
                                    "flipped_l1id and wrong_bcid.",
                                    true)}),
        setting(&S::card, "card", "Name of the card, or address of the function.", {.required = true}),
        setting(&S::endpoint, "endpoint", "Endpoint of the card.", {.maximum = 1}),
        setting(&S::fault, {setting(&Fault::link, "link", "Link of the card, if the fault is of a link.", {.maximum = 31})}),
        setting(&S::at, "at", "Time after the start."),
        setting(&S::every, "every", "Period of a repeated fault, at least 1ms. 0s: once."),
        setting(&S::fault,
                {
                    setting(&Fault::duration, "duration",
                            "For link_down, stuck_fifo, removal and wrong_bcid: time until the fault ends. 0s: it stays; "
                            "wrong_bcid: only "
                            "one chunk."),
                    setting(&Fault::value, "value", "For temperature: degrees Celsius.",
                            {.minimum = kColdest, .maximum = kHottest}),
                }),
    };
  }();
  return settings;
}

const Settings<EmulatorSettings>& process_settings() {
  using E = EmulatorSettings;
  using base::IdlePolicy;
  static const Settings<E> settings{
      setting(&E::name, "name", "Name of the process and of its control socket."),
      setting(&E::idle, "idle", {{"sleep", IdlePolicy::sleep}, {"yield", IdlePolicy::yield}, {"spin", IdlePolicy::spin}},
              "What idle threads do. spin: lowest latency, but uses a core for each DMA thread and each server."),
      setting(&E::directory, "directory",
              "Directory of the cards' sockets and locks. Empty: cards/ in the runtime directory, where drivers look."),
      setting(&E::stop_limit, "stop_limit",
              "From the first Ctrl-C, SIGTERM or order to stop to the end of the process. Transfers that have not ended by "
              "then are cut off.",
              {.minimum = 1e9, .maximum = 3.6e12}),
  };
  return settings;
}

}  // namespace rodeo::emulator
