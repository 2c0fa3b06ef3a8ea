#include "emulator/configuration.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "base/sentence.h"
#include "base/units.h"
#include "emulator/settings.h"
#include "settings/effective.h"

namespace rodeo::emulator {

using settings::Table;

namespace {

Error bad_card(const Table& table, std::string what, std::string next = {}) {
  return {"emulator.bad_card", fmt::format("{}: {}", table.path(), what), table.where(), std::move(next)};
}

void complete_felix(const Table& table, CardKeys& keys, ConfigurationErrors& errors) {
  FelixSourceSettings& source = keys.felix;
  source.links = keys.links;
  source.format.family = !keys.wide_trailers                           ? formats::BlockFamily::trailer16
                         : keys.block_bytes > formats::kBlockUnitBytes ? formats::BlockFamily::phase2
                                                                       : formats::BlockFamily::trailer32;
  source.format.block_bytes = keys.block_bytes;
  source.connector = keys.connector.value_or(source.connector);
  if (source.links_per_group > 1 && !source.full_mode)
    errors.push_back(bad_card(table, "links_per_group is for mode = \"full\": a GBT link has all triggers"));
  if (source.links % source.links_per_group != 0)
    errors.push_back(bad_card(table, fmt::format("{} cannot be split into groups of {}", base::counted(source.links, "link"),
                                                 source.links_per_group)));
  if (!source.format.valid())
    errors.push_back(bad_card(table, "block_size must be 1KiB, or with trailer_bits = \"32\" a multiple of it up to 64KiB"));
  if (source.chunk_bytes_max != 0 && source.chunk_bytes_max < source.chunk_bytes)
    errors.push_back(bad_card(
        table, fmt::format("chunk_size_max ({}) is below chunk_size ({})", source.chunk_bytes_max, source.chunk_bytes),
        "leave it out for chunks of one size"));
  if (const unsigned there = source.links * (source.full_mode ? 1 : source.elinks_per_link); source.elinks > there)
    errors.push_back(
        bad_card(table, fmt::format("elinks is {}, and the card has {}", source.elinks, base::counted(there, "E-link"))));
  if (source.loopback && !source.full_mode && source.elinks_per_link > FelixSource::kFirstControlElink)
    errors.push_back(bad_card(table, "with loopback, elinks_per_link must be at most 62: E-links 62 and 63 loop back"));
  if (source.ttc_link && !source.full_mode && source.elinks_per_link > FelixSource::kTtcElink)
    errors.push_back(
        bad_card(table, "with ttc_link, elinks_per_link must be below 60: E-group 7, E-path 3 is the trigger's"));
}

void check_rdh(const Table& table, const RdhSourceSettings& source, ConfigurationErrors& errors) {
  if (source.page_bytes % 32 != 0) errors.push_back(bad_card(table, "page_size is a multiple of 32"));
  if (source.frame_bytes % 32 != 0) errors.push_back(bad_card(table, "frame_size is a multiple of 32"));
}

/// The speed of one lane; its meaning depends on the card. At most the capacity of the fibres.
void read_link_speed(const Table& table, CardKeys& card, ConfigurationErrors& errors) {
  const std::string& text = card.link_speed;
  if (text == "0") return;
  const auto speed = base::parse_bits_per_second(text);
  if (!speed || *speed <= 0) {
    errors.push_back(
        bad_card(table, fmt::format("link_speed `{}` is not a bit rate", text), "write it as 9.6Gbps, or 320Mbps"));
    return;
  }
  const auto at_most = [&](double most, const char* what) {
    if (*speed > most * 1.000001)
      errors.push_back(bad_card(table, fmt::format("link_speed is at most {:.4g} Mbps: {}", most * 1e-6, what)));
  };
  switch (card.type) {
    case CardType::felix:
      card.felix.link_bits_per_second = *speed;
      if (card.felix.full_mode) {
        at_most(card.felix.links <= 12 ? 9.6e9 : 4.8e9, "FULL mode has 12 links with 9.6Gbps, or 24 with half of it");
      } else {
        at_most(4.48e9 / card.felix.elinks_per_link, "all E-links of a GBT link together have 4.48Gbps");
      }
      break;
    case CardType::cru:
      card.link_bits_per_second = *speed;
      at_most(4.48e9, "a GBT link carries 3.2Gbps of user data, 4.48Gbps in wide mode");
      break;
    case CardType::crorc:
      errors.push_back(bad_card(table, "a C-RORC has no link_speed: its generator is in the card"));
      break;
  }
}

EmulatedCardSettings card_of(const Table& table, ConfigurationErrors& errors) {
  CardKeys card = card_settings().read(table.parameters());
  card.rdh.seed = card.felix.seed;
  if (card.type == CardType::felix) complete_felix(table, card, errors);
  if (card.type != CardType::felix) check_rdh(table, card.rdh, errors);
  if (card.type == CardType::crorc) {
    card.rdh.payload = formats::PagePattern::words;  // the C-RORC's data generator has this pattern
    if (card.endpoints != 1) errors.push_back(bad_card(table, "a C-RORC has one endpoint"));
  }
  read_link_speed(table, card, errors);
  card.where = table.where();
  for (unsigned endpoint = 0; endpoint < card.endpoints; ++endpoint) {
    if (const auto address = function_address(card.address, endpoint); !address) {
      errors.push_back({address.error().code, address.error().what, table.where(), address.error().next});
      break;
    }
  }
  return card;
}

/// Reads the trigger settings: this process assigns triggers, or follows an authority.
void read_trigger(const Table& table, EmulatorSettings& settings, ConfigurationErrors& errors) {
  trigger_settings().fill(settings, table.parameters());
  const auto wrong = [&](std::string what, std::string next) {
    errors.push_back({"emulator.bad_trigger", std::move(what), table.where(), std::move(next)});
  };
  for (const std::string* address : {&settings.serve, &settings.follow}) {
    if (address->empty()) continue;
    const auto parsed = trigger::TriggerAddress::parse(*address);
    if (!parsed) {
      errors.push_back({parsed.error().code, parsed.error().what, table.where(), parsed.error().next});
    } else if (const auto secret = parsed->secret(settings.secret_file, "emulator.trigger.secret_file"); !secret) {
      errors.push_back({secret.error().code, secret.error().what, where_of(table, "secret_file"), secret.error().next});
    }
  }
  if (!settings.follow.empty()) {
    if (!settings.serve.empty())
      wrong("a process that follows a trigger authority cannot serve triggers itself",
            "let all processes follow the one authority");
    for (const char* key : {"rate", "spacing", "simple_dead_time", "bucket_triggers", "bucket_period", "ecr_period",
                            "ecr_triggers", "limit", "wait_for", "hold", "seed", "follower_timeout"}) {
      if (table.given(key))
        wrong(
            fmt::format("emulator.trigger.{} belongs to the authority, but this process follows `{}`", key, settings.follow),
            "set it where the triggers are served, or leave out `follow`");
    }
  }
  for (const EmulatedCardSettings& card : settings.cards) {
    const FelixSourceSettings& felix = card.felix;
    if (card.type != CardType::felix || felix.l1id_counter == 0) continue;
    if (felix.l1id_counter != 32 || felix.l1id_bits != 32)
      errors.push_back({"emulator.bad_card",
                        fmt::format("l1id_counter is {} with l1id_bits = {}", felix.l1id_counter, felix.l1id_bits),
                        card.where, "give l1id_counter = 32 without l1id_bits, or leave it out"});
    if (settings.trigger.ecr_triggers != 0 || settings.trigger.ecr_period.count() != 0)
      errors.push_back({"emulator.bad_card",
                        "a counter of 32 bits has no event counter resets, but the trigger makes such resets", card.where,
                        "leave out l1id_counter, or emulator.trigger.ecr_triggers and ecr_period"});
  }
  if (settings.follow.empty() && settings.serve.empty()) return;
  if (settings.name.size() > 64 || settings.system.size() > 64)
    wrong("emulator.name and emulator.trigger.system have at most 64 characters", "");
  // BCID and trigger type follow from the seed: data of cards with different seeds could not be built together.
  const auto seed_of = [](const EmulatedCardSettings& card) {
    return card.type == CardType::felix ? card.felix.seed : card.rdh.seed;
  };
  for (const EmulatedCardSettings& card : settings.cards) {
    if (seed_of(card) == seed_of(settings.cards.front())) continue;
    errors.push_back(
        {"emulator.bad_card", "all cards of a system with one trigger authority have the same seed", card.where, ""});
  }
}

ScheduledFault fault_of(const Table& table, ConfigurationErrors& errors) {
  const ScheduledFault fault = fault_settings().read(table.parameters());
  if (fault.every.count() > 0 && fault.every < kShortestFaultPeriod)
    errors.push_back({"emulator.bad_fault", fmt::format("{}.every is at least 1ms", table.path()), table.where(),
                      "leave it out for a fault that happens once"});
  return fault;
}

/// An address that functions of both cards have, in any notation; empty if there is none.
std::string shared_address(const EmulatedCardSettings& one, const EmulatedCardSettings& other) {
  for (unsigned i = 0; i < one.endpoints; ++i) {
    for (unsigned j = 0; j < other.endpoints; ++j) {
      const auto mine = function_address(one.address, i);
      const auto theirs = function_address(other.address, j);
      if (mine && theirs && *mine == *theirs) return *mine;
    }
  }
  return {};
}

std::string names_of_faults(CardType type) {
  std::string names;
  for (const FaultInfo& info : fault_infos()) {
    if (has_fault(type, info.kind)) names += fmt::format("{}{}", names.empty() ? "" : ", ", info.name);
  }
  return names;
}

/// The card of a fault, by its name or by the address of a function; then the fault gets this function's endpoint.
const EmulatedCardSettings* card_of_fault(const EmulatorSettings& settings, ScheduledFault& fault) {
  const auto wanted = function_address(fault.card);
  for (const EmulatedCardSettings& card : settings.cards) {
    if (card.name == fault.card) return &card;
    for (unsigned endpoint = 0; wanted && endpoint < card.endpoints; ++endpoint) {
      const auto address = function_address(card.address, endpoint);
      if (!address || *address != *wanted) continue;
      if (endpoint > 0) fault.endpoint = endpoint;
      fault.card = card.name;
      return &card;
    }
  }
  return nullptr;
}

/// Refuses a fault that would never happen, or would differ from the configuration.
void check_fault(const EmulatorSettings& settings, ScheduledFault& scheduled, const Table& table,
                 ConfigurationErrors& errors) {
  const auto wrong = [&](std::string what, std::string next) {
    errors.push_back({"emulator.bad_fault", std::move(what), table.where(), std::move(next)});
  };
  const Fault& fault = scheduled.fault;
  const EmulatedCardSettings* const card = card_of_fault(settings, scheduled);
  if (card == nullptr) {
    std::string names;
    for (const EmulatedCardSettings& one : settings.cards) names += (names.empty() ? "" : ", ") + one.name;
    return wrong(fmt::format("there is no card `{}` for this fault", scheduled.card), "there are: " + names);
  }
  const unsigned links = links_of(*card);
  if (scheduled.endpoint >= card->endpoints || (fault_has_link(fault.kind) && fault.link >= links))
    wrong(fmt::format("card `{}` ({}) has {} of {}, and the fault is for endpoint {}, link {}", card->name,
                      name_of(card->type), base::counted(card->endpoints, "endpoint"), base::counted(links, "link"),
                      scheduled.endpoint, fault.link),
          fmt::format("count from 0: links are 0 to {}", links - 1));
  if (!has_fault(card->type, fault.kind))
    wrong(fmt::format("card `{}` ({}) has no fault {}", card->name, name_of(card->type), fault_name(fault.kind)),
          "it has: " + names_of_faults(card->type));
  if (fault.duration.count() > 0 && !fault_has_duration(fault.kind))
    wrong(fmt::format("the fault {} has no duration", fault_name(fault.kind)),
          "leave it out; link_down, stuck_fifo and removal have one");
}

/// Refuses cards that cannot be distinguished, and faults that would never happen.
void check_together(EmulatorSettings& settings, std::span<const Table> faults, ConfigurationErrors& errors) {
  for (std::size_t i = 0; i < settings.cards.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const EmulatedCardSettings& card = settings.cards[i];
      const EmulatedCardSettings& other = settings.cards[j];
      const auto same = [&](const char* what, const std::string& value) {
        errors.push_back({"emulator.bad_card", fmt::format("two cards have the {} {}", what, value), card.where,
                          fmt::format("the other stands at {}", other.where)});
      };
      if (const std::string address = shared_address(card, other); !address.empty()) same("address", address);
      if (card.name == other.name) same("name", card.name);
      if (card.serial == other.serial && card.type == other.type) same("serial number", std::to_string(card.serial));
    }
  }
  for (std::size_t i = 0; i < settings.faults.size(); ++i) check_fault(settings, settings.faults[i], faults[i], errors);
}

}  // namespace

ConfigurationErrors no_emulator(const std::filesystem::path& file) {
  return {Error{"config.missing_key", "there is no [[emulator.card]] to emulate", file.string(),
                "see examples/felix-card.toml"}};
}

std::expected<EmulatorSettings, ConfigurationErrors> emulator_of(const Configuration& configuration) {
  const Table* const emulator = configuration.table("emulator");
  const bool serves = emulator != nullptr && !emulator->table("trigger")->parameters().text("serve").empty();
  if (emulator == nullptr || (emulator->tables("card").empty() && !serves)) {
    return std::unexpected(no_emulator(configuration.file));
  }
  ConfigurationErrors errors;
  EmulatorSettings settings;
  process_settings().fill(settings, emulator->parameters());
  settings.configuration_sha256 = settings::configuration_sha256(configuration);
  if (settings.name.empty() || settings.name.find('/') != std::string::npos) {
    errors.push_back({"config.bad_value", fmt::format("emulator.name: `{}` cannot name a process", settings.name),
                      emulator->where(), "a name without `/`"});
  }
  unsigned endpoints = 0;
  for (const Table& table : emulator->tables("card")) {
    EmulatedCardSettings& card = settings.cards.emplace_back(card_of(table, errors));
    if (table.parameters().integer("connector") < 0) card.felix.connector = endpoints;
    endpoints += card.endpoints;
  }
  read_trigger(*emulator->table("trigger"), settings, errors);
  for (const Table& table : emulator->tables("fault")) settings.faults.push_back(fault_of(table, errors));
  check_together(settings, emulator->tables("fault"), errors);
  if (!errors.empty()) return std::unexpected(std::move(errors));
  return settings;
}

}  // namespace rodeo::emulator
