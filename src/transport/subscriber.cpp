#include "transport/subscriber.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/log.h"
#include "base/sentence.h"
#include "formats/network_page.h"
#include "transport/random.h"

namespace rodeo::transport {
namespace {

constexpr std::uint64_t kLookNs = 200'000'000;            // interval between two looks at the bus
constexpr std::uint64_t kLeavingNs = 2'000'000'000;       // limit of the silence after leave()
constexpr std::uint64_t kLeavingFullNs = 10'000'000'000;  // the same limit while our consumers have all pages

}  // namespace

Subscriber::Subscriber(SubscriberSettings settings, std::vector<Fid> links, FabricPorts& ports)
    : settings_(std::move(settings)), links_(std::move(links)), ports_(ports), session_(random_number()) {}

Subscriber::~Subscriber() { close(); }

void Subscriber::progress(std::uint64_t now_ns) {
  now_ns_ = now_ns;
  // This is set here and not at the event, because the event may be old after a stall of this thread.
  if (std::exchange(heard_, false) || heard_ns_ == 0) heard_ns_ = now_ns;
  if (std::exchange(gave_back_, false)) gave_back_ns_ = now_ns;
  if (state_ == State::ended) return;
  if (leaving_ && left_ns_ == 0) left_ns_ = now_ns;
  // Without credit the publisher cannot send: our consumers must give pages back first.
  const std::uint64_t patience = posted_ == arrived_ ? kLeavingFullNs : kLeavingNs;
  if (leaving_ && (state_ != State::flowing || now_ns - std::max({left_ns_, heard_ns_, gave_back_ns_}) > patience)) {
    if (flowed_) {
      ++cut_off_;
      base::log_warning("publisher {} sent no END: the chunks that it still had are not counted here", publisher_);
    }
    close();
    state_ = State::ended;
    return;
  }
  if (state_ == State::away) {
    if (called_ns_ == 0 || now_ns - called_ns_ >= kLookNs) call(now_ns);
    return;
  }
  read();
  const bool greeted = state_ == State::flowing || state_ == State::ended || state_ == State::away;
  if (state_ == State::flowing) give_credit(1);
  if (!greeted && now_ns - called_ns_ > kGreetingNs)
    broken({"transport.closed", fmt::format("publisher {} does not answer", publisher_)});
}

// Calls one of the publishers that have these links on the bus. Bus entries may be stale: after each failure the next
// publisher is tried. After a broken connection, its publisher is tried first.
void Subscriber::call(std::uint64_t now_ns) {
  called_ns_ = now_ns;
  const auto bus = read_bus(settings_.bus);
  if (!bus) {
    trouble_ = base::in_a_line(bus.error());
    return;
  }
  trouble_ = fmt::format("no publisher on the bus {} has its links", settings_.bus.string());
  std::vector<const BusEntry*> candidates;
  for (const BusEntry& entry : bus->entries) {
    const bool has_all =
        std::ranges::all_of(links_, [&](Fid link) { return std::ranges::find(entry.links, link) != entry.links.end(); });
    if (!has_all || entry.trigger_list != settings_.trigger_list) continue;
    if (settings_.publisher.empty() || entry.name == settings_.publisher) candidates.push_back(&entry);
  }
  std::ranges::stable_partition(candidates, [&](const BusEntry* entry) { return entry->instance == instance_; });
  if (candidates.empty()) refusal_.reset();  // the publisher that refused is gone
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (greet(*candidates[attempts_ % candidates.size()])) return;
    next_publisher();
  }
}

// False: this machine cannot call the publisher.
bool Subscriber::greet(const BusEntry& entry) {
  publisher_ = entry.name;
  if (const auto chosen = caller_.choose_provider(settings_.provider, entry, settings_.here); !chosen) {
    const Error why{chosen.error().code, "publisher " + chosen.error().what};
    trouble_ = why.what;
    if (std::exchange(logged_[publisher_], why.code) != why.code) base::log_warning("{}; trying again", trouble_);
    last_end_ = why;
    refusal_ = Refusal{publisher_, why};
    return false;
  }
  asked_provider_ = false;
  if (const auto called = caller_.call(entry, settings_.secret, session_); !called) {
    trouble_ = base::in_a_line(called.error());
    return false;
  }
  state_ = State::greeting;
  trouble_ = fmt::format("publisher {} does not answer", publisher_);
  return true;
}

void Subscriber::next_publisher() {
  ++attempts_;
  caller_.forget_failures();
}

void Subscriber::read() {
  const auto all = caller_.socket.read([this](const formats::ControlMessage& message) { return on_message(message); });
  if (!all) broken(all.error());
}

Result<void> Subscriber::on_message(const formats::ControlMessage& message) {
  if (state_ == State::greeting) {
    if (!RODEO_TRY(caller_.on_greeting(message))) return {};
    RODEO_TRY(caller_.check_instance());
    return subscribe();
  }
  if (const auto* refused = std::get_if<formats::ControlRefuse>(&message))
    return std::unexpected(Error{refused->code, refused->what});
  if (const auto* accept = std::get_if<formats::ControlAccept>(&message); accept != nullptr && state_ == State::subscribed)
    return on_accept(*accept);
  // The publisher may have no data, and its END may arrive before the event of the fabric's connection.
  const bool may_end = state_ == State::connecting || state_ == State::flowing;
  if (const auto* end = std::get_if<formats::ControlEnd>(&message); end != nullptr && may_end && !last_) {
    last_ = end->pages;
    losses_ = end->losses;
    end_if_complete();
    return {};
  }
  return std::unexpected(Error{"transport.protocol", "it sent a message that is not allowed here"});
}

Result<void> Subscriber::subscribe() {
  if (caller_.entry().page_bytes < formats::NetworkPageWriter::kLeastBytes)
    return std::unexpected(Error{"transport.page_bytes",
                                 fmt::format("its pages have {} bytes: too few for a run", caller_.entry().page_bytes)});
  asked_provider_ = true;
  port_ = RODEO_TRY(ports_.port(caller_.provider()));
  // Another publisher, and the same one after a restart, do not know the pages taken so far. The session with the last
  // publisher stands until the new one accepts.
  const bool goes_on = instance_ == caller_.entry().instance;
  wish_ = {.session = goes_on ? session_ : random_number(), .taken = goes_on ? taken_ : 0};
  const bool all_home = std::ranges::none_of(slots_, [](Slot slot) { return slot == Slot::taken; });
  if (page_bytes_ != caller_.entry().page_bytes && received_.empty() && all_home) {
    page_bytes_ = caller_.entry().page_bytes;
    memory_ = RODEO_TRY(base::Arena::create(std::size_t{settings_.pages} * page_bytes_));
    slots_.assign(settings_.pages, Slot::free);
    free_.resize(settings_.pages);
    std::iota(free_.begin(), free_.end(), 0U);
  }
  if (page_bytes_ != caller_.entry().page_bytes)
    return std::unexpected(Error{"transport.page_bytes", "its pages have another size, and old ones are still in use"});
  connection_ = RODEO_TRY(port_->open({memory_.data(), memory_.size()}, page_bytes_));
  state_ = State::subscribed;
  caller_.socket.say(formats::ControlSubscribe{.session = wish_.session,
                                               .taken = wish_.taken,
                                               .monitor = settings_.monitor,
                                               .unbuffered = settings_.unbuffered,
                                               .trigger_list = settings_.trigger_list,
                                               .name = settings_.name,
                                               .provider = caller_.provider(),
                                               .page_bytes = page_bytes_,
                                               .pages = settings_.pages,
                                               .address = port_->address(connection_),
                                               .links = links_});
  return {};
}

Result<void> Subscriber::on_accept(const formats::ControlAccept& accept) {
  if (accept.page_bytes != page_bytes_)
    return std::unexpected(Error{"transport.page_bytes", "its page size is not the one on the bus"});
  anew_ = std::exchange(instance_, caller_.entry().instance) != caller_.entry().instance || anew_;
  session_ = wish_.session;
  taken_ = wish_.taken;
  if (!accept.resumed) {
    ++sessions_;
    if (std::exchange(flowed_, false)) ++cut_off_;
    taken_ = 0;
  }
  posted_ = known_posted_ = arrived_ = 0;
  known_taken_ = taken_;
  window_ = std::min<std::uint64_t>(accept.pages, slots_.size());
  last_.reset();
  state_ = State::connecting;
  return port_->connect(connection_, accept.address, accept.token);
}

bool Subscriber::on_event(const FabricPort& port, const FabricPort::Event& event) {
  if (port_ != &port || event.connection != connection_ || state_ < State::subscribed || state_ == State::ended)
    return false;
  switch (event.what) {
    case FabricPort::Event::What::connected:
      state_ = State::flowing;
      mark_heard();
      ++connections_;
      if (connections_ > 1 && anew_) {
        base::log_warning(
            "publisher {} is there again after a restart: chunks that it had not sent are not counted here, and "
            "chunk numbers of its links may begin again",
            publisher_);
      } else if (connections_ > 1) {
        base::log_info("publisher {} is there again", publisher_);
      }
      anew_ = false;
      flowed_ = true;
      trouble_.clear();
      last_end_.reset();
      refusal_.reset();
      logged_.clear();
      attempts_ = 0;
      give_credit(quarter());
      end_if_complete();
      break;
    case FabricPort::Event::What::received:
      slots_[event.slot] = Slot::taken;
      received_.push_back({event.slot, {memory_.data() + std::size_t{event.slot} * page_bytes_, event.bytes}, sessions_});
      mark_heard();
      ++arrived_;
      ++taken_;
      end_if_complete();
      break;
    case FabricPort::Event::What::broken:
      read();  // an END may have come before
      if (port_ != nullptr) broken({"transport.closed", "the fabric's connection is gone"});
      break;
    case FabricPort::Event::What::sent: break;
  }
  return true;
}

void Subscriber::end_if_complete() {
  if (state_ != State::flowing || !last_ || arrived_ < *last_) return;
  close();
  state_ = State::ended;
}

std::optional<Subscriber::Received> Subscriber::next() {
  if (held_ || received_.empty()) return std::nullopt;
  const Received page = received_.front();
  received_.pop_front();
  return page;
}

void Subscriber::give_back(std::uint32_t slot) {
  gave_back_ = true;
  slots_[slot] = Slot::free;
  free_.push_back(slot);
}

// Posts the free slots. Tells the publisher about posted and taken pages once either has grown by `step`.
void Subscriber::give_credit(std::uint64_t step) {
  for (; !held_ && !free_.empty() && port_->receive(connection_, free_.back()); free_.pop_back()) {
    slots_[free_.back()] = Slot::posted;
    ++posted_;
  }
  const bool runs_short = posted_ != known_posted_ && known_posted_ <= arrived_ + slots_.size() / 2;
  if (runs_short || posted_ - known_posted_ >= step || taken_ - known_taken_ >= step) acknowledge_pages();
}

void Subscriber::acknowledge_pages() {
  known_posted_ = posted_;
  known_taken_ = taken_;
  caller_.socket.say(formats::ControlCredit{.pages = known_posted_, .taken = known_taken_});
}

void Subscriber::refuse(const std::string& why) {
  if (state_ == State::flowing)
    broken({"transport.protocol", why});  // in other states, the connection of that page has ended
}

void Subscriber::leave() {
  if (leaving_) return;
  leaving_ = true;
  if (state_ >= State::subscribed && state_ != State::ended) caller_.socket.say(formats::ControlLeave{});
}

void Subscriber::broken(Error why) {
  // The provider may be the cause: the subscriber tries the next one before it logs anything.
  const bool tries_next = asked_provider_ && state_ != State::flowing && caller_.next_provider();
  if (!tries_next && state_ != State::flowing) next_publisher();
  trouble_ = base::in_a_line(why);
  if (state_ == State::flowing) {
    base::log_warning("publisher {} is gone ({}); searching for it", publisher_, trouble_);
  } else if (tries_next) {
    base::log_info("publisher {}: {}; trying another network", publisher_, trouble_);
  } else if (std::exchange(logged_[publisher_], why.code) != why.code) {  // a repeated trouble is logged once
    base::log_warning("publisher {}: {}; trying again", publisher_, trouble_);
  }
  // Only a change of the set-up removes these reasons.
  const bool refuses = why.code == "transport.secret" || why.code == "transport.version" || why.code == "transport.provider";
  if (!tries_next && refuses) refusal_ = Refusal{publisher_, why};
  if (!tries_next) last_end_ = std::move(why);
  close();
  state_ = State::away;
}

void Subscriber::close() {
  if (state_ == State::flowing && taken_ != known_taken_) acknowledge_pages();
  if (port_ != nullptr && state_ >= State::subscribed && state_ != State::ended) port_->close(connection_);
  port_ = nullptr;
  caller_.socket.close();
  for (std::uint32_t slot = 0; slot < slots_.size(); ++slot) {
    if (slots_[slot] == Slot::posted) give_back(slot);
  }
}

}  // namespace rodeo::transport
