#include "emulator/emulator.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/clock.h"
#include "base/log.h"
#include "base/runtime_dir.h"
#include "base/sentence.h"
#include "card_registers/pci_address.h"
#include "emulator/crorc_card.h"
#include "emulator/cru_card.h"
#include "emulator/felix_card.h"

namespace rodeo::emulator {
namespace {

std::filesystem::path cards_directory(const std::filesystem::path& wanted) {
  std::filesystem::path directory = wanted;
  if (directory.empty()) {
    const auto runtime = base::runtime_directory();
    if (!runtime) throw SetupError(runtime.error());
    directory = *runtime / "cards";
  }
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (!error) std::filesystem::permissions(directory, std::filesystem::perms::owner_all, error);
  if (error) {
    throw SetupError({"base.runtime_dir", fmt::format("cannot make {}: {}", directory.native(), error.message())});
  }
  return directory;
}

unsigned functions_of(const EmulatorSettings& settings) {
  unsigned count = 0;
  for (const EmulatedCardSettings& card : settings.cards) count += card.endpoints;
  return count;
}

trigger::TriggerSettings trigger_of(const EmulatorSettings& settings) {
  trigger::TriggerSettings trigger = settings.trigger;
  if (trigger.wait_for == 0) trigger.wait_for = functions_of(settings);
  return trigger;
}

std::string follower_name(const std::string& card, unsigned endpoint) { return fmt::format("{}:{}", card, endpoint); }

/// The payload seed of all cards; BCID and trigger type follow from it.
std::uint64_t seed_of(const EmulatorSettings& settings) {
  if (settings.cards.empty()) return 1;
  const EmulatedCardSettings& card = settings.cards.front();
  return card.type == CardType::felix ? card.felix.seed : card.rdh.seed;
}

}  // namespace

Result<std::string> function_address(const std::string& text, unsigned endpoint) {
  auto address = card_registers::PciAddress::parse(text);
  if (!address)
    return std::unexpected(Error{"emulator.bad_address", address.error().what, address.error().where, address.error().next});
  if (address->function + endpoint > 7)
    return std::unexpected(Error{"emulator.bad_address",
                                 fmt::format("`{}` with {} endpoints has a function above 7", text, endpoint + 1),
                                 {},
                                 "begin at a lower function"});
  address->function = static_cast<std::uint8_t>(address->function + endpoint);
  return address->text();
}

trigger::TriggerHub& Emulator::hub() {
  if (authority_) return *authority_;
  return *link_;
}

Emulator::Emulator(EmulatorSettings settings) : settings_(std::move(settings)) {
  if (settings_.follow.empty()) {
    authority_ = std::make_unique<trigger::TriggerAuthority>(trigger_of(settings_));
  } else {
    link_ =
        std::make_unique<trigger::TriggerFollower>(trigger::TriggerFollowerSettings{.address = settings_.follow,
                                                                                    .name = settings_.name,
                                                                                    .system = settings_.system,
                                                                                    .seed = seed_of(settings_),
                                                                                    .secret_file = settings_.secret_file,
                                                                                    .functions = functions_of(settings_)});
  }
  settings_.directory = cards_directory(settings_.directory);
  for (const EmulatedCardSettings& card : settings_.cards) {
    for (unsigned endpoint = 0; endpoint < card.endpoints; ++endpoint) functions_.push_back(make_function(card, endpoint));
  }
  if (!settings_.serve.empty()) {
    server_ = std::make_unique<trigger::TriggerServer>(trigger::TriggerServerSettings{.address = settings_.serve,
                                                                                      .name = settings_.name,
                                                                                      .system = settings_.system,
                                                                                      .seed = seed_of(settings_),
                                                                                      .secret_file = settings_.secret_file,
                                                                                      .timeout = settings_.follower_timeout},
                                                       *authority_);
  }
  start_ns_ = base::steady_now_ns();
  for (const ScheduledFault& fault : settings_.faults) {
    schedule_.push_back({.scheduled = fault, .at_ns = start_ns_ + static_cast<std::uint64_t>(fault.at.count())});
  }
}

Emulator::~Emulator() = default;

std::unique_ptr<PciFunction> Emulator::make_function(const EmulatedCardSettings& card, unsigned endpoint) {
  const auto address = function_address(card.address, endpoint);
  if (!address) throw SetupError(Error{address.error().code, address.error().what, card.where, address.error().next});
  PciFunction::Identity identity{.name = card.name,
                                 .type = std::string(name_of(card.type)),
                                 .address = *address,
                                 .endpoint = endpoint,
                                 .links = links_of(card),
                                 .directory = settings_.directory,
                                 .idle = settings_.idle,
                                 .cpu = card.cpus.empty() ? -1 : card.cpus[endpoint % card.cpus.size()]};
  EmulatedCardSettings settings = card;
  settings.felix.connector += endpoint;
  settings.paced = link_ != nullptr || settings_.trigger.rate_hz > 0;
  // A card that drops frames is never busy.
  const bool drops = card.type == CardType::cru && card.drop;
  const auto triggers = [&] {
    return std::make_unique<trigger::TriggerSource>(hub(), follower_name(card.name, endpoint),
                                                    drops ? std::uint64_t{1} << 24 : card.fifo_triggers);
  };
  switch (card.type) {
    case CardType::cru:
      identity.pci = card_registers::cru::kPciId;
      return std::make_unique<CruCard>(std::move(identity), std::move(settings), triggers());
    case CardType::crorc:
      identity.pci = card_registers::crorc::kPciId;
      return std::make_unique<CrorcCard>(std::move(identity), std::move(settings));
    case CardType::felix: break;
  }
  identity.pci = card_registers::felix::kPciIds[endpoint == 0 ? 0 : 1];
  return std::make_unique<FelixCard>(std::move(identity), std::move(settings), triggers());
}

PciFunction* Emulator::find(const std::string& id) {
  const auto colon = id.rfind(':');
  const auto address = card_registers::PciAddress::parse(id);
  for (const auto& function : functions_) {
    const auto& identity = function->identity();
    if (address && identity.address == address->text()) return function.get();
    if (identity.name == id && identity.endpoint == 0) return function.get();
    if (colon != std::string::npos && identity.name == id.substr(0, colon) &&
        std::to_string(identity.endpoint) == id.substr(colon + 1)) {
      return function.get();
    }
  }
  return nullptr;
}

Result<void> Emulator::inject(const std::string& id, const Fault& fault) {
  PciFunction* const function = find(id);
  if (function == nullptr) {
    return std::unexpected(Error{"emulator.no_such_card", fmt::format("there is no function `{}` here", id), "",
                                 "name an address (3b:00.0), a card by its name, or name:endpoint"});
  }
  const auto& identity = function->identity();
  const auto refused = [](std::string what, std::string next) {
    return std::unexpected(Error{"emulator.no_such_fault", std::move(what), {}, std::move(next)});
  };
  if (fault.kind == FaultKind::temperature && !(fault.value >= kColdest && fault.value <= kHottest))
    return refused(fmt::format("a card has {} to {} degrees Celsius, not {}", kColdest, kHottest, fault.value), "");
  if (fault_has_link(fault.kind) && fault.link >= identity.links)
    return refused(fmt::format("{} ({}) has no link {}", id, identity.type, fault.link),
                   fmt::format("links are 0 to {}", identity.links - 1));
  if (fault.duration.count() > 0 && !fault_has_duration(fault.kind))
    return refused(fmt::format("{} has no duration", fault_name(fault.kind)),
                   "link_down, stuck_fifo and removal end by themselves");
  if (function->removed() && fault.kind != FaultKind::replug)
    return refused(fmt::format("{} is removed", id), "`replug` brings it back");
  if (!function->removed() && fault.kind == FaultKind::replug)
    return refused(fmt::format("{} is plugged in already", id), "`card_reset` resets it under load");
  if (!function->inject(fault))
    return refused(fmt::format("{} ({}) has no fault {}", id, identity.type, fault_name(fault.kind)),
                   "`rodeo emulate fault --help` lists the faults of each type of card");
  faults_.fetch_add(1, std::memory_order_relaxed);
  end_later(id, fault);
  if (const auto turn = told_[static_cast<std::size_t>(fault.kind)].turn())
    base::log_info("fault {} on {} (link {}){}", fault_name(fault.kind), identity.address, fault.link, turn.suffix());
  return {};
}

/// Schedules the end of a fault; not for link_down, whose end the card itself handles.
void Emulator::end_later(const std::string& id, const Fault& fault) {
  if (fault.duration.count() <= 0 || fault.kind == FaultKind::link_down) return;
  Due end;
  end.scheduled.card = id;
  end.scheduled.fault.kind = fault.kind == FaultKind::removal ? FaultKind::replug : fault.kind;
  end.scheduled.fault.link = fault.link;
  end.scheduled.fault.ends = true;
  end.at_ns = base::steady_now_ns() + static_cast<std::uint64_t>(fault.duration.count());
  end.undoes = true;
  const std::lock_guard lock(ends_mutex_);
  ends_.push_back(std::move(end));
}

void Emulator::apply(Due& due, std::uint64_t now_ns) {
  const ScheduledFault& scheduled = due.scheduled;
  const std::string by_name = fmt::format("{}:{}", scheduled.card, scheduled.endpoint);
  const auto done = inject(find(by_name) != nullptr ? by_name : scheduled.card, scheduled.fault);
  if (!done && !due.undoes) {
    if (const auto turn = told_[static_cast<std::size_t>(scheduled.fault.kind)].turn())
      base::log_warning("{}{}", base::in_a_line(done.error()), turn.suffix());
  }
  if (scheduled.every.count() > 0) {
    due.at_ns = now_ns + static_cast<std::uint64_t>(scheduled.every.count());
  } else {
    due.over = true;
  }
}

void Emulator::poll() {
  const std::uint64_t now_ns = base::steady_now_ns();
  for (Due& due : schedule_) {
    if (now_ns >= due.at_ns) apply(due, now_ns);
  }
  std::erase_if(schedule_, [](const Due& due) { return due.over; });
  {
    const std::lock_guard lock(ends_mutex_);
    schedule_.insert(schedule_.end(), ends_.begin(), ends_.end());
    ends_.clear();
  }
  if (authority_) authority_->advance(now_ns);
}

std::chrono::milliseconds Emulator::next_poll() const {
  constexpr std::chrono::milliseconds kShort{5}, kLong{50};
  if (server_ || std::ranges::any_of(functions_, [](const auto& function) { return function->running(); })) return kShort;
  std::chrono::nanoseconds wait = kLong;
  const std::uint64_t now_ns = base::steady_now_ns();
  for (const Due& due : schedule_)
    wait = std::min(wait, std::chrono::nanoseconds(due.at_ns > now_ns ? due.at_ns - now_ns : 0));
  return std::chrono::ceil<std::chrono::milliseconds>(wait);
}

Result<std::uint64_t> Emulator::hold_triggers() {
  if (!authority_) return std::unexpected(follows_another());
  return authority_->hold_run(base::steady_now_ns());
}

Result<void> Emulator::release_triggers(std::optional<unsigned> wait_for) {
  if (!authority_) return std::unexpected(follows_another());
  if (wait_for == 0U) wait_for = functions_of(settings_);
  authority_->release(wait_for, base::steady_now_ns());
  return {};
}

Result<trigger::TriggerAuthority::Next> Emulator::advance_marks(const trigger::TriggerAuthority::Advance& advance) {
  if (!authority_) return std::unexpected(follows_another());
  return authority_->advance_marks(advance, base::steady_now_ns());
}

Error Emulator::follows_another() const {
  const std::string authority = link_->report().link->authority;
  return {"emulator.follows", "this process follows the triggers of another, and does not assign any", settings_.follow,
          authority.empty() ? "ask the emulator that serves them"
                            : fmt::format("ask the emulator `{}`, which assigns them", authority)};
}

void Emulator::finish() {
  for (const auto& function : functions_) function->finish();
}

double Emulator::seconds() const { return static_cast<double>(base::steady_now_ns() - start_ns_) * 1e-9; }

EmulatorReport Emulator::report() const {
  EmulatorReport report{.seconds = seconds(),
                        .cpu_seconds = base::process_cpu_seconds(),
                        .trigger = authority_ ? authority_->report() : link_->report(),
                        .faults = faults_};
  if (server_) server_->report(report.trigger);
  for (const auto& function : functions_) {
    FunctionReport& one = report.functions.emplace_back(function->report());
    const std::string name = follower_name(one.name, one.endpoint);
    const auto follower = std::ranges::find_if(
        report.trigger.followers,
        [&](const trigger::TriggerFollowerReport& candidate) { return candidate.peer.empty() && candidate.name == name; });
    if (follower == report.trigger.followers.end()) continue;
    one.busy_seconds = follower->busy_seconds;
    one.vetoed = follower->held_up;
    one.vetoed_alone = follower->held_up_alone;
    if (authority_) one.dead_time = follower->dead_time;
  }
  return report;
}

}  // namespace rodeo::emulator
