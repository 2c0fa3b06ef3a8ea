// Operations by hand: `rodeo card loopback | ctp | pattern | userlogic | siu`.
#include <fmt/format.h>

#include <chrono>
#include <thread>
#include <tuple>

#include "card/dma/data_taking.h"
#include "card/operations/ctp_emulator.h"
#include "card/operations/loopback_test.h"
#include "card/operations/pattern_player.h"
#include "card/operations/siu.h"
#include "card/operations/user_logic.h"
#include "card_registers/cru.h"
#include "cli/card.h"
#include "process/stop_signals.h"

namespace rodeo::cli {

namespace {

/// Opens the card and calls `work` with it.
template <typename Work>
Result<ExitCode> on_card(const std::string& id, Work work) {
  auto card = RODEO_TRY(open_card(id));
  return work(*card);
}

/// No process can read from the card while the returned locks live. With `while_running` it takes no locks. Errors:
/// card.locked.
Result<std::vector<card::pci::ByteLock>> undisturbed(card::Card& card, bool while_running, const std::string& what) {
  if (while_running) return {};
  auto locks = card::lock_out_readers(card);
  if (locks) return locks;
  Error error = locks.error().within(what);
  error.next = "wait until the reader has ended, or force it with --while-running";
  return std::unexpected(std::move(error));
}

Option& add_while_running(Command& verb, bool& while_running) {
  return verb.flag("--while-running", while_running, "Also while a process reads data from the card");
}

struct LoopbackOptions {
  std::string id;
  std::string links = "0-11";
  std::string pattern = "counter";
  std::string counter = "30bit";
  std::string mask_high = "0xffffffff";
  std::string mask_medium = "0xffffffff";
  std::string mask_low = "0xffffffff";
  bool internal = false;
  bool skip_reset = false;
  bool expert = false;
  bool while_running = false;
  std::chrono::nanoseconds duration = std::chrono::seconds{1};
  std::optional<std::chrono::nanoseconds> interval;
  OutputFormat format = OutputFormat::table;
};

Result<ExitCode> loopback(const LoopbackOptions& options) {
  if (options.duration < std::chrono::milliseconds{1})
    return value_error("--duration must be at least a millisecond", "the default is 1s");
  if (options.interval) RODEO_TRY(check_interval(*options.interval, "--interval"));
  card::LoopbackSettings settings;
  const auto links = RODEO_TRY(link_mask(options.links));
  settings.links = links;
  settings.internal = options.internal;
  settings.static_pattern = options.pattern == "static";
  settings.counter_8_bit = options.counter == "8bit";
  for (const auto& [option, text, mask] : {std::tuple{"--high-mask", &options.mask_high, &settings.mask_high},
                                           {"--med-mask", &options.mask_medium, &settings.mask_medium},
                                           {"--low-mask", &options.mask_low, &settings.mask_low}}) {
    *mask = RODEO_TRY(hexadecimal_word(*text, option));
  }
  return on_card(options.id, [&](card::Card& card) -> Result<ExitCode> {
    std::optional<card::LoopbackTest> test;
    // A test that only looks needs no locks.
    RODEO_TRY(undisturbed(card, options.while_running || options.skip_reset, "the test would overwrite the data"));
    if (!options.skip_reset) test.emplace(RODEO_TRY(card::LoopbackTest::start(card, settings)));
    std::vector<Column> columns{{"link", "link"}};
    if (options.expert || options.format != OutputFormat::table)
      columns.insert(columns.end(), {{"PLL", "pll_locked"}, {"RX locked", "rx_locked"}, {"data", "data_up"}});
    columns.insert(columns.end(), {{"PHY", "phy_up"}, {"RX errors", "rx_errors"}, {"FEC errors", "fec_errors"}});
    const process::StopSignals signals;
    const auto end = std::chrono::steady_clock::now() + options.duration;
    for (bool first = true, over = false; !over; first = false) {
      const auto next = options.interval ? std::min(end, std::chrono::steady_clock::now() + *options.interval) : end;
      while (std::chrono::steady_clock::now() < next && !signals.stop_requested())
        std::this_thread::sleep_for(std::chrono::milliseconds{10});
      over = next == end || signals.stop_requested();
      const auto status = RODEO_TRY(card::loopback_status(card, settings.links));
      std::uint64_t errors = 0;
      Table table(columns);
      for (const card::LoopbackStatus& link : status) {
        errors += link.rx_errors + link.fec_errors;
        const auto yes = [](bool good) { return Cell(good, {}, good ? Style::good : Style::bad); };
        std::vector<Cell> row{link.link};
        if (columns.size() > 4) row.insert(row.end(), {yes(link.pll_locked), yes(link.rx_locked), yes(link.data_up)});
        row.insert(row.end(), {yes(link.phy_up), Cell(link.rx_errors, {}, link.rx_errors == 0 ? Style::plain : Style::bad),
                               Cell(link.fec_errors, {}, link.fec_errors == 0 ? Style::plain : Style::bad)});
        table.add_row(std::move(row));
      }
      table.print(options.format, options.interval.has_value(), first);
      if (over && errors != 0) return ExitCode::not_verified;
    }
    return ExitCode::done;
  });
}

void add_loopback(Command& card) {
  auto options = std::make_shared<LoopbackOptions>();
  Command& verb =
      card.verb("loopback", "GBT loopback test: sends a pattern down the links and counts errors in the returned data");
  verb.example("rodeo card loopback --id '#0' --links 0-3 --duration 10s",
               "through a fibre from each transmitter to its receiver")
      .example("rodeo card loopback --id '#0' --internal", "inside the card, without fibres");
  add_card_id(verb, options->id);
  verb.option("--links", options->links, "Links, as in 0,1,8-10").value_name("LINKS");
  verb.choice("--pattern-mode", options->pattern, {"counter", "static"}, "Pattern to send");
  verb.choice("--counter-type", options->counter, {"30bit", "8bit"}, "Width of the counter");
  verb.option("--high-mask", options->mask_high, "Bits to compare, in hexadecimal: high word").value_name("MASK");
  verb.option("--med-mask", options->mask_medium, "Bits to compare, in hexadecimal: middle word").value_name("MASK");
  verb.option("--low-mask", options->mask_low, "Bits to compare, in hexadecimal: low word").value_name("MASK");
  verb.flag("--internal", options->internal, "Loop back inside the card");
  verb.flag("--skip-reset", options->skip_reset, "Only look: send nothing, clear nothing");
  verb.flag("--expert-view", options->expert,
            "Show also the state of PLL, receiver and data layer; JSON and CSV always have them");
  verb.duration("--duration", options->duration, "Time to count errors; at least a millisecond");
  verb.duration("--interval", options->interval, "Print the counts at this interval; only at the end if left out");
  add_while_running(verb, options->while_running);
  verb.output(options->format);
  verb.paragraph("The links' settings are restored at the end, also after Ctrl-C. Errors end in exit status 7.");
  verb.run([options] { return loopback(*options); });
}

struct CtpOptions {
  std::string id;
  std::string mode = "periodic";
  card::CtpEmulation settings;
  std::string first_orbit = "0x0";
  std::vector<std::uint64_t> bunch_crossings;
  bool eox = false;
  bool single = false;
  bool status = false;
  bool while_running = false;
  OutputFormat format = OutputFormat::table;
};

Result<ExitCode> ctp(CtpOptions& options) {
  using Mode = card::CtpEmulation::Mode;
  constexpr std::pair<std::string_view, Mode> kModes[]{
      {"manual", Mode::manual}, {"periodic", Mode::periodic}, {"continuous", Mode::continuous},
      {"fixed", Mode::fixed},   {"hc", Mode::health},         {"cal", Mode::calibration}};
  for (const auto& [name, mode] : kModes) {
    if (name == options.mode) options.settings.mode = mode;
  }
  if (options.eox + options.single + options.status > 1)
    return usage_error("--eox, --single-trigger and --status exclude each other", "one at a time");
  if (!options.bunch_crossings.empty() && options.settings.mode != Mode::fixed)
    return usage_error(fmt::format("--bc is for mode fixed, not for {}", options.mode),
                       "--trigger-mode fixed, or leave out --bc");
  const auto orbit = RODEO_TRY(hexadecimal_word(options.first_orbit, "--init-orbit"));
  options.settings.first_orbit = orbit;
  if (options.bunch_crossings.size() > options.settings.bunch_crossings.size())
    return usage_error("at most nine bunch crossings", "--bc up to nine times");
  if (!options.bunch_crossings.empty()) options.settings.bunch_crossings.fill(0);
  for (std::size_t i = 0; i < options.bunch_crossings.size(); ++i)
    options.settings.bunch_crossings[i] =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(options.bunch_crossings[i], UINT32_MAX));
  if ((options.eox || options.single || options.status) && options.settings != card::CtpEmulation{})
    return usage_error("--eox, --single-trigger and --status set nothing, but another option gives a setting",
                       "leave it out, or start the emulator with it");
  return on_card(options.id, [&](card::Card& card) -> Result<ExitCode> {
    RODEO_TRY(
        undisturbed(card, options.while_running || options.status, "the triggers of the data being read would change"));
    RODEO_TRY(options.status   ? Result<void>{}
              : options.eox    ? card::stop_ctp(card)
              : options.single ? card::send_trigger(card)
                               : card::start_ctp(card, options.settings));
    const auto now = RODEO_TRY(card::read_ctp(card));
    Properties properties;
    properties.add("mode", "mode", Cell(std::string(now.mode)));
    properties.add("period [ticks of 25 ns]", "period_ticks", now.ticks == 0 ? Cell(Json(), "-") : Cell(now.ticks));
    properties.add("last bunch crossing", "last_bc", now.last_bc);
    properties.add("last heartbeat frame", "last_hb", now.last_hb);
    properties.add("heartbeat frames kept", "keep", now.keep);
    properties.add("then dropped", "drop", now.drop);
    properties.add("first orbit", "first_orbit", now.first_orbit);
    properties.print(options.format);
    return ExitCode::done;
  });
}

void add_ctp(Command& card) {
  auto options = std::make_shared<CtpOptions>();
  Command& verb = card.verb("ctp", "Starts the CRU's emulator of the trigger processor, ends the run, or sends one trigger");
  verb.example("rodeo card ctp --id '#0' --trigger-mode periodic --trigger-period 400",
               "a physics trigger every 400 ticks of 25 ns")
      .example("rodeo card ctp --id '#0' --eox", "end of run");
  add_card_id(verb, options->id);
  verb.choice("--trigger-mode", options->mode, {"manual", "periodic", "continuous", "fixed", "hc", "cal"},
              "Kind of triggers");
  verb.option("--trigger-period,--trigger-freq", options->settings.ticks, "Clock ticks (25 ns) between triggers");
  verb.option("--bcmax", options->settings.last_bc, "Last bunch crossing of an orbit");
  verb.option("--hbmax", options->settings.last_hb, "Heartbeat frames of a time frame, minus one");
  verb.option("--hbkeep", options->settings.keep, "Heartbeat frames that are kept, ...");
  verb.option("--hbdrop", options->settings.drop, "... and then dropped, in turn");
  verb.option("--init-orbit", options->first_orbit, "First orbit of the run, in hexadecimal").value_name("ORBIT");
  verb.option("--bc", options->bunch_crossings,
              "Mode fixed: a bunch crossing that gets a trigger, up to nine times. The default is nine, from 333 to 2997 in "
              "steps of 333");
  verb.flag("--eox", options->eox, "End the run");
  verb.flag("--single-trigger", options->single, "Send one trigger; the emulator runs in mode manual");
  verb.flag("--status", options->status, "Change nothing and show the settings");
  add_while_running(verb, options->while_running);
  verb.output(options->format);
  verb.run([options] { return ctp(*options); });
}

struct PatternOptions {
  std::string id;
  std::optional<std::string> pattern[4];
  card::PatternSettings settings;
  std::optional<std::uint32_t> length_1, delay_1, length_2, length_3, trigger_1, trigger_2, trigger_3, time_frames_2;
  bool read_back = false;
  OutputFormat format = OutputFormat::table;
};

Result<ExitCode> pattern(PatternOptions& options) {
  card::PatternSettings& settings = options.settings;
  bool play = settings.play_1_at_start || settings.play_1_now || settings.play_2_now;
  for (std::size_t i = 0; i < 4; ++i) {
    if (!options.pattern[i]) continue;
    settings.patterns[i] = RODEO_TRY(card::Pattern::parse(*options.pattern[i]));
    play = true;
  }
  for (const auto& [given, setting] : {std::pair{&options.length_1, &settings.length_1},
                                       {&options.delay_1, &settings.delay_1},
                                       {&options.length_2, &settings.length_2},
                                       {&options.length_3, &settings.length_3},
                                       {&options.trigger_1, &settings.trigger_1},
                                       {&options.trigger_2, &settings.trigger_2},
                                       {&options.trigger_3, &settings.trigger_3},
                                       {&options.time_frames_2, &settings.time_frames_2}}) {
    if (!*given) continue;
    *setting = **given;
    play = true;
  }
  if (play && options.read_back)
    return usage_error("--read-back changes nothing, but another option gives a setting",
                       "leave out one of them; the settings are shown in any case");
  return on_card(options.id, [&](card::Card& card) -> Result<ExitCode> {
    if (play) RODEO_TRY(card::play_patterns(card, settings));
    const auto now = RODEO_TRY(card::read_patterns(card));
    Properties properties;
    for (std::size_t i = 0; i < 4; ++i)
      properties.add(fmt::format("pattern {}", i), fmt::format("pattern_{}", i), now.patterns[i].text());
    properties.add("pattern 1: length [ticks]", "length_1", now.length_1);
    properties.add("pattern 1: delay [ticks]", "delay_1", now.delay_1);
    properties.add("pattern 2: length [ticks]", "length_2", now.length_2);
    properties.add("pattern 3: length [ticks]", "length_3", now.length_3);
    properties.add("pattern 1: trigger bit", "trigger_1", now.trigger_1);
    properties.add("pattern 2: trigger bit", "trigger_2", now.trigger_2);
    properties.add("pattern 3: trigger bit", "trigger_3", now.trigger_3);
    properties.add("pattern 2: every so many time frames", "time_frames_2", now.time_frames_2);
    properties.add("pattern 1 at start of run", "play_1_at_start", now.play_1_at_start);
    properties.print(options.format);
    return ExitCode::done;
  });
}

void add_pattern(Command& card) {
  auto options = std::make_shared<PatternOptions>();
  card::PatternSettings& settings = options->settings;
  Command& verb =
      card.verb("pattern", "The CRU's pattern player: sends patterns of 80 bits down the links, or shows its settings");
  verb.example("rodeo card pattern --id '#0' --pat1 0x55 --pat1-length 10 --execute-pat1-now", "once, now")
      .example("rodeo card pattern --id '#0'", "its settings");
  add_card_id(verb, options->id);
  for (int i = 0; i < 4; ++i)
    verb.option(fmt::format("--pat{}", i), options->pattern[i],
                i == 0 ? "Pattern sent while no other plays; 80 bits" : "80 bits, decimal or 0x...")
        .value_name("BITS");
  verb.option("--pat1-length", options->length_1, "Clock ticks; 1 if left out");
  verb.option("--pat1-delay", options->delay_1, "Clock ticks before it; 0 if left out");
  verb.option("--pat2-length", options->length_2, "Clock ticks; 1 if left out");
  verb.option("--pat3-length", options->length_3, "Clock ticks; 1 if left out");
  verb.option("--pat1-trigger-select", options->trigger_1, "Trigger bit that plays it; 29 if left out");
  verb.option("--pat2-trigger-select", options->trigger_2, "Trigger bit that plays it; 30 if left out");
  verb.option("--pat3-trigger-select", options->trigger_3, "Trigger bit that plays it; 0 if left out");
  verb.option("--pat2-trigger-tf", options->time_frames_2, "Time frames from one pattern 2 to the next; 0 if left out");
  verb.flag("--execute-pat1-at-start", settings.play_1_at_start, "Pattern 1 at the start of a run");
  verb.flag("--execute-pat1-now", settings.play_1_now, "Play pattern 1");
  verb.flag("--execute-pat2-now", settings.play_2_now, "Play pattern 2");
  verb.flag("--read-back", options->read_back, "Change nothing; the same as no option");
  verb.output(options->format);
  verb.paragraph(
      "Patterns are set as a whole: if any option is given, all others get their defaults. The new settings are shown.");
  verb.run([options] { return pattern(*options); });
}

struct UserLogicOptions {
  std::string id;
  std::optional<unsigned> event_size;
  std::optional<unsigned> system_id;
  std::optional<unsigned> link_id;
  bool random = false;
  bool fixed = false;
  bool while_running = false;
  OutputFormat format = OutputFormat::table;
};

Result<ExitCode> user_logic(const UserLogicOptions& options) {
  if (options.random && options.fixed)
    return usage_error("--random-event-size or --fixed-event-size, not both", "leave one out");
  return on_card(options.id, [&](card::Card& card) -> Result<ExitCode> {
    if (options.event_size || options.system_id || options.link_id || options.random || options.fixed) {
      card::UserLogicChange change{
          .event_words = options.event_size, .system_id = options.system_id, .link_id = options.link_id};
      if (options.random || options.fixed) change.random_size = options.random;
      RODEO_TRY(undisturbed(card, options.while_running, "any change resets the user logic"));
      RODEO_TRY(card::change_user_logic(card, change));
    }
    const auto now = RODEO_TRY(card::read_user_logic(card));
    Properties properties;
    properties.add("event size [GBT words]", "event_words", now.event_words);
    properties.add("event size [B]", "event_bytes", now.event_words * 16);
    properties.add("random sizes", "random_size", now.random_size);
    properties.add("system id", "system_id", now.system_id);
    properties.add("link id", "link_id", now.link_id);
    properties.print(options.format);
    return ExitCode::done;
  });
}

void add_user_logic(Command& card) {
  auto options = std::make_shared<UserLogicOptions>();
  Command& verb = card.verb("userlogic", "Shows or sets the example user logic of a CRU");
  verb.example("rodeo card userlogic --id '#0'", "its settings")
      .example("rodeo card userlogic --id '#0' --event-size 128", "sets the event size, and resets the user logic");
  add_card_id(verb, options->id);
  verb.option("--event-size", options->event_size, "GBT words of 128 bits");
  verb.flag("--random-event-size", options->random, "Random sizes");
  verb.flag("--fixed-event-size", options->fixed, "All of one size");
  verb.option("--system-id", options->system_id, "System id");
  verb.option("--link-id", options->link_id, "Link id");
  add_while_running(verb, options->while_running);
  verb.output(options->format);
  verb.run([options] { return user_logic(*options); });
}

struct SiuOptions {
  std::string id;
  unsigned channel = 0;
  bool reset = false;
  OutputFormat format = OutputFormat::table;
};

Result<ExitCode> siu(const SiuOptions& options) {
  return on_card(options.id, [&](card::Card& card) -> Result<ExitCode> {
    if (options.reset) RODEO_TRY(card::reset_siu(card, options.channel));
    const auto status = RODEO_TRY(card::read_siu_status(card, options.channel));
    Properties properties;
    properties.add("channel", "channel", options.channel);
    properties.add("status word", "word", Cell(status.word, fmt::format("{:#010x}", status.word)));
    properties.add("conditions", "conditions", Json::array_of(status.conditions));
    properties.print(options.format);
    return ExitCode::done;
  });
}

void add_siu(Command& card) {
  auto options = std::make_shared<SiuOptions>();
  Command& verb = card.verb("siu", "Shows the status of the SIU at the far end of a C-RORC's link");
  verb.example("rodeo card siu --id '#0' --channel 2", "its status in words");
  add_card_id(verb, options->id);
  verb.option("--channel", options->channel, "Link, 0 to 5");
  verb.flag("--reset", options->reset, "Reset it first");
  verb.output(options->format);
  verb.run([options] { return siu(*options); });
}

}  // namespace

void add_card_operations(Command& card) {
  add_loopback(card);
  add_pattern(card);
  add_ctp(card);
  add_siu(card);
  add_user_logic(card);
}

}  // namespace rodeo::cli
