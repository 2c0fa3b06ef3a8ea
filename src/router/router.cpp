#include "router/router.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "input/card_input.h"
#include "input/chunk_limit.h"
#include "input/losses.h"
#include "process/configuration.h"
#include "router/reader_cut.h"
#include "router/subscriber_changes.h"

namespace rodeo::router {
namespace {

/// Returns the input that the factory made. An error gets the place of its table.
std::unique_ptr<DataInput> make_input(const InputSettings& settings, const base::ComponentRegistry& registry) {
  auto made = registry.make_input(settings.type, settings.parameters);
  if (made) return *std::move(made);
  Error error = std::move(made).error();
  if (error.where.empty()) error.where = settings.where;
  throw SetupError(std::move(error));
}

}  // namespace

Router::Router(RouterSettings settings, const base::ComponentRegistry& registry) : settings_(std::move(settings)) {
  input_ = make_input(settings_.input, registry);
  try {
    make_readers();
    if (settings_.front_ends.enabled) make_front_ends();
  } catch (const SetupError&) {
    throw;
  } catch (const std::exception& error) {
    throw SetupError({"router.start", error.what(), settings_.input.where, ""});
  }
}

Router::~Router() {
  stop();
  join();
}

void Router::make_readers() {
  const std::span<const Fid> links = input_->links();
  auto parts = cut_into_readers(links, input_->link_groups(), settings_.readers);
  if (!parts) throw SetupError(parts.error());
  auto publisher = settings_.publisher.publisher({});
  if (!publisher) throw SetupError(publisher.error());
  const process::EndTime subscribers{"router.grace", settings_.publisher.grace};
  for (const std::string& warning : process::cut_by_stop_limit(std::span(&subscribers, 1), settings_.stop_limit))
    base::log_warning("{}", warning);
  publisher->losses = [this] {
    std::vector<NamedCounter> losses;
    for (const NamedCounter& counter : input_->counters()) {
      if (input::is_loss(counter.name))
        losses.push_back({fmt::format("{}_{}", settings_.name, counter.name), counter.value});
    }
    return losses;
  };
  const auto add = [&](std::unique_ptr<DataStream> stream, std::span<const Fid> reader_links, bool list) {
    const std::size_t n = readers_.size();
    publisher->name = fmt::format("{}.{}", settings_.name, n);
    publisher->max_chunk_bytes = input::max_chunk_bytes(*stream);
    readers_.push_back(
        std::make_unique<Reader>(Reader::Settings{.thread_name = fmt::format("rodeo-route-{}", n),
                                                  .cpu = n < settings_.cpus.size() ? settings_.cpus[n] : -1,
                                                  .idle = settings_.idle,
                                                  .trigger_list = list,
                                                  .wait_for_subscribers = settings_.wait_for_subscribers && !list},
                                 std::move(stream), *publisher, reader_links));
  };
  for (const std::vector<Fid>& part : *parts) add(input_->open(part), part, false);
  if (auto list = input_->open_trigger_list()) {
    const Fid fid = trigger_list_fid(links);
    add(std::move(list), std::span(&fid, 1), true);
  }
}

void Router::make_front_ends() {
  const auto cards = input::CardInputSettings::from(settings_.input.parameters);
  auto publisher = settings_.publisher.publisher(settings_.name + ".front_ends");
  if (!publisher) throw SetupError(publisher.error());
  front_ends_ = std::make_unique<FrontEndServer>(*publisher, settings_.front_ends, open_front_ends(cards));
}

void Router::start() {
  phase_ = Phase::running;
  if (front_ends_) front_ends_->start();
  waiting_ = settings_.wait_for_subscribers;
  for (const auto& reader : readers_) reader->start();
  if (waiting_) return;
  try {
    start_input();
  } catch (const std::exception& error) {
    stop();
    join();
    if (const auto* known = dynamic_cast<const SetupError*>(&error)) throw SetupError(known->error());
    throw SetupError({"router.start", error.what(), settings_.input.where, ""});
  }
}

void Router::start_input() {
  waiting_ = false;
  for (const auto& reader : readers_) reader->stop_waiting();
  start_ns_ = base::steady_now_ns();
  input_->start();
}

void Router::step() {
  if (phase_ != Phase::running && phase_ != Phase::draining) return;
  const auto all = [&](auto condition) {
    return std::ranges::all_of(readers_, [&](const auto& one) { return condition(*one); });
  };
  RouterStatus now = status();
  if (failure_.empty() && !now.failure.empty()) {
    failure_ = now.failure;
    stop();
  }
  for (std::string& message : subscriber_changes(previous_, now)) messages_.push_back(std::move(message));
  if (waiting_ && phase_ == Phase::running && all([](const Reader& one) { return one.all_links_subscribed(); })) {
    try {
      messages_.emplace_back("every link has a subscriber: the input starts");
      start_input();
    } catch (const std::exception& error) {
      failure_ = error.what();
      stop();
    }
  }
  previous_ = std::move(now);
  if (all([](const Reader& one) { return one.stream_ended(); })) {
    if (end_ns_ == 0) end_ns_ = base::steady_now_ns();
    phase_ = Phase::draining;
  }
  if (!all([](const Reader& one) { return one.ended(); })) return;
  join();
  phase_ = Phase::stopped;
}

void Router::give_up() {
  for (const auto& reader : readers_) reader->give_up();
}

void Router::stop() {
  stopping_ = true;
  if (phase_ == Phase::running) {
    phase_ = Phase::draining;
    if (end_ns_ == 0) end_ns_ = base::steady_now_ns();
  }
  input_->stop();
  for (const auto& reader : readers_) reader->end();
}

void Router::join() {
  // Also stops the threads of an input that ended by itself; its streams belong to the readers.
  input_->stop();
  for (const auto& reader : readers_) reader->join();
  if (front_ends_) front_ends_->stop();
}

RouterStatus Router::status() const {
  RouterStatus out;
  out.phase = phase_;
  out.waiting = waiting_;
  if (start_ns_ != 0) out.seconds = static_cast<double>((end_ns_ != 0 ? end_ns_ : base::steady_now_ns()) - start_ns_) * 1e-9;
  out.failure = failure_;
  for (const auto& reader : readers_) {
    out.readers.push_back(reader->status());
    if (out.failure.empty()) out.failure = reader->failure();
  }
  if (front_ends_) out.front_ends = front_ends_->status();
  out.input = input_->counters();
  out.input_cpu_seconds = input_->cpu_seconds();
  if (out.failure.empty()) out.failure = input_->failure();
  return out;
}

std::vector<std::string> Router::take_messages() { return std::exchange(messages_, {}); }

}  // namespace rodeo::router
