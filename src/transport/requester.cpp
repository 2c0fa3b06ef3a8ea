#include "transport/requester.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/named_counters.h"
#include "base/sentence.h"
#include "transport/active_list.h"
#include "transport/bus.h"
#include "transport/caller.h"
#include "transport/connection_table.h"
#include "transport/message_connection.h"
#include "transport/provider_choice.h"
#include "transport/random.h"
#include "transport/socket_watch.h"

namespace rodeo::transport {
namespace {

constexpr std::uint64_t kLookNs = 1'000'000;    // interval between two looks at sockets and time-outs
constexpr std::uint64_t kCallNs = 200'000'000;  // interval between two looks at the bus
constexpr std::size_t kMostCopied = 32U << 10;
constexpr int kMostCalls = 16;                // calls at one look; the answers of these are read before the next calls
constexpr std::uint32_t kMostUnheard = 1000;  // number of successive looks at which unread events may delay time-outs

/// In the order of kRequesterCounters.
enum class Counter : std::uint8_t {
  requests,
  replies,
  refused,
  timed_out,
  cancelled,
  lost,
  late_replies,
  connections,
  reply_bytes,
  count
};
static_assert(kRequesterCounters.size() == static_cast<std::size_t>(Counter::count));

constexpr std::uint16_t place_of(Requester::Request request) { return static_cast<std::uint16_t>(request); }
constexpr Requester::Service service_of(Requester::Request request) {
  return static_cast<Requester::Service>(request >> 48U);
}

}  // namespace

/// A service, with its open requests.
struct AskedService {
  enum class State : std::uint8_t {
    away,        ///< searched on the bus
    greeting,    ///< handshake
    called,      ///< waits for ACCEPT
    connecting,  ///< waits for the fabric's connection
    flowing,
    removed,
  };
  /// The state of an open request.
  struct Pending {
    enum class State : std::uint8_t {
      free,
      waiting,    ///< waits for the reply
      ended,      ///< is reported once the network has released the memory
      abandoned,  ///< the caller gave up, the service still answers; reports `end` once the memory is free
    };
    State state = State::free;
    bool keeps_memory = false;  // the request was not copied; the caller owns the memory
    Requester::Request request = 0;
    std::uint64_t deadline_ns = 0;
    OutgoingMessage* out = nullptr;  // null after the network has released the message
    Requester::Reply end = {};
  };

  std::string name;
  State state = State::away;
  std::uint64_t called_ns = 0;
  Caller caller = {};
  std::unique_ptr<MessageConnection> connection = {};
  std::uint64_t instance = 0;
  std::uint64_t connections = 0;
  std::string trouble = {};
  std::string logged = {};  // code of the last trouble in the log

  std::vector<Pending> pending = {};
  std::vector<std::uint16_t> places = {};  // the free ones
  std::uint32_t drawn = 0;                 // low 32 bits of the number of requests so far
  std::size_t under_way = 0;
  std::uint64_t no_time_out_before_ns = UINT64_MAX;  // earliest deadline of the waiting requests

  bool active = false;             // ActiveList uses it
  bool may_have_messages = false;  // the socket may have messages
  bool unconnected = false;        // the service is in the list of unconnected services
};

struct Requester::Inside {
  using State = AskedService::State;
  using Pending = AskedService::Pending;

  explicit Inside(RequesterSettings of) : settings(std::move(of)) {
    settings.most_requests = std::clamp<std::uint32_t>(settings.most_requests, 1, formats::kMostControlRequests);
    if (settings.bus.empty()) settings.bus = default_bus();
  }

  // ---- a connection
  void call(AskedService& service);
  void read(AskedService& service);
  Result<void> on_message(AskedService& service, const formats::ControlMessage& message);
  Result<void> send_call(AskedService& service);
  void broken(AskedService& service, const Error& why);
  void on_connected(AskedService& service);
  void handle_events();
  void check();
  void end_slow_calls();
  void call_missing();
  bool advance(AskedService& service);

  // ---- requests
  std::optional<Request> ask(Service number, std::uint16_t kind, MessageParts parts, bool copy,
                             std::chrono::nanoseconds patience);
  Result<void> on_reply(AskedService& service, MessageConnection::Incoming incoming);
  void time_out();
  void time_out(AskedService& service);
  void give_up(AskedService& service, Pending& pending, Outcome outcome);
  void end(AskedService& service, Pending& pending, Reply reply);
  void report_end(AskedService& service, Pending& pending);
  void free(AskedService& service, Pending& pending);
  void collect_done(AskedService& service);

  RequesterSettings settings;
  const Here here = Here::detect();
  const std::uint64_t instance = random_number();
  FabricPorts ports{{}, PortSize::many};
  ConnectionTable<AskedService> connections;
  SocketWatch watch;
  ActiveList<AskedService> active;                      // services with work; poll() visits no others
  std::vector<AskedService*> unconnected;               // services that are away or connecting
  bool short_of_credit = false;                         // a service gave too little credit
  std::uint32_t unheard = 0;                            // number of looks since all events were read
  std::vector<std::unique_ptr<AskedService>> services;  // declared after the ports, so that the connections end first
  std::vector<Reply> ended;                             // returned by the next poll()
  std::uint64_t now_ns = base::steady_now_ns();
  std::uint64_t looked_ns = 0;
  std::uint64_t no_time_out_before_ns = UINT64_MAX;  // earliest deadline of all services
  base::CounterBlock<Counter> counters;
};

// ---- a connection

// Searches the service's name on the bus, and calls the process if it answers.
void Requester::Inside::call(AskedService& service) {
  service.called_ns = now_ns;
  const auto entry = find_entry(settings.bus, service.name);
  if (!entry) {
    service.trouble = base::in_a_line(entry.error());
    return;
  }
  service.trouble = fmt::format("the bus {} has no service {}", settings.bus.string(), service.name);
  if (!*entry) return;
  const auto called = [&]() -> Result<void> {
    RODEO_TRY(service.caller.choose_provider(settings.provider, **entry, here));
    RODEO_TRY(service.caller.call(**entry, settings.secret, instance));
    return watch.add(service.caller.socket, &service);
  }();
  if (!called) {
    service.trouble = base::in_a_line(called.error());
    return service.caller.socket.close();
  }
  service.state = State::greeting;
  active.add(service);
  service.trouble = fmt::format("{} does not answer", service.name);
}

void Requester::Inside::read(AskedService& service) {
  const auto all = service.caller.socket.read([&](const formats::ControlMessage& message) {
    if (service.state != State::flowing) service.called_ns = now_ns;
    return on_message(service, message);
  });
  if (!all) return broken(service, all.error());
  service.may_have_messages = !*all;  // the watch does not see the socket's own buffer, which may have the rest
}

Result<void> Requester::Inside::on_message(AskedService& service, const formats::ControlMessage& message) {
  if (service.state == State::greeting) {
    if (!RODEO_TRY(service.caller.on_greeting(message))) return {};
    RODEO_TRY(service.caller.check_instance());
    return send_call(service);
  }
  if (const auto* refused = std::get_if<formats::ControlRefuse>(&message))
    return std::unexpected(Error{refused->code, refused->what});
  if (const auto* accept = std::get_if<formats::ControlAccept>(&message);
      accept != nullptr && service.state == State::called) {
    if (accept->page_bytes != service.caller.entry().page_bytes)
      return std::unexpected(Error{"transport.page_bytes", "its page size is not the one on the bus"});
    if (accept->pages == 0 || accept->pages > settings.most_requests)
      return std::unexpected(Error{"transport.protocol", "it accepts no requests, or too many"});
    // All places are free, because the requests of the last connection ended with it.
    service.places.clear();
    for (std::uint32_t place = accept->pages; place-- > 0;) service.places.push_back(static_cast<std::uint16_t>(place));
    service.state = State::connecting;
    return service.connection->port().connect(service.connection->number(), accept->address, accept->token);
  }
  if (const auto* credit = std::get_if<formats::ControlCredit>(&message); credit != nullptr && service.connection) {
    service.connection->credit(credit->pages);
    return {};
  }
  return std::unexpected(Error{"transport.protocol", "it sent a message that is not allowed here"});
}

Result<void> Requester::Inside::send_call(AskedService& service) {
  const std::uint32_t page_bytes = service.caller.entry().page_bytes;
  if (page_bytes <= formats::kPieceHeadBytes)
    return std::unexpected(Error{"transport.page_bytes", "its pages are too small for a request"});
  FabricPort* const port = RODEO_TRY(ports.port(service.caller.provider()));
  const MessageConnection::Settings memory{
      .page_bytes = page_bytes, .pages = settings.pages, .most_bytes = settings.most_reply_bytes, .wake = [this, &service] {
        active.add(service);
      }};
  service.connection = RODEO_TRY(MessageConnection::open(*port, memory));
  connections.put(*port, service.connection->number(), &service);
  service.state = State::called;
  service.caller.socket.say(formats::ControlCall{.pages = settings.pages,
                                                 .requests = settings.most_requests,
                                                 .name = settings.name,
                                                 .provider = service.caller.provider(),
                                                 .address = port->address(service.connection->number())});
  return {};
}

void Requester::Inside::broken(AskedService& service, const Error& why) {
  if (service.state == State::called || service.state == State::connecting) (void)service.caller.next_provider();
  const bool flowed = service.state == State::flowing;
  service.trouble = base::in_a_line(why);
  if (flowed || service.logged != why.code) {  // a repeated trouble is logged once
    base::log_warning("{} {} ({}); searching for it", service.name, flowed ? "is gone" : "cannot be asked", service.trouble);
    service.logged = why.code;
  }
  watch.remove(service.caller.socket);
  service.caller.socket.close();
  service.may_have_messages = false;
  service.no_time_out_before_ns = UINT64_MAX;
  service.state = State::away;
  if (!std::exchange(service.unconnected, true)) unconnected.push_back(&service);
  if (!service.connection) return;
  connections.remove(service.connection->port(), service.connection->number());
  service.connection->close();
  collect_done(service);
  for (Pending& pending : service.pending) {
    if (pending.state == Pending::State::waiting) {
      end(service, pending, {.request = pending.request, .service = service_of(pending.request), .outcome = Outcome::lost});
    }
    if (pending.state == Pending::State::abandoned) free(service, pending);
  }
  service.connection.reset();
}

void Requester::Inside::on_connected(AskedService& service) {
  service.state = State::flowing;
  service.instance = service.caller.entry().instance;
  ++service.connections;
  counters.add(Counter::connections);
  if (!service.logged.empty()) base::log_info("{} is there again", service.name);
  service.logged.clear();
  service.trouble.clear();
}

void Requester::Inside::handle_events() {
  const bool all = connections.poll(ports, [this](AskedService& service, const FabricPort::Event& event) {
    active.add(service);
    auto incoming = service.connection->on_event(event);
    if (!incoming) return broken(service, incoming.error());
    if (event.what == FabricPort::Event::What::connected) on_connected(service);
    if (!*incoming) return;
    if (const auto taken = on_reply(service, *std::move(*incoming)); !taken) broken(service, taken.error());
  });
  unheard = all ? 0 : unheard + 1;
}

void Requester::Inside::check() {
  const bool all = now_ns - looked_ns >= kLookNs;
  bool heard = unheard == 0;
  if (all || short_of_credit) {
    const bool no_more = watch.ready([&](void* whose) {
      auto& service = *static_cast<AskedService*>(whose);
      service.may_have_messages = true;
      active.add(service);
    });
    heard = heard && no_more;
  }
  short_of_credit = false;
  active.visit([&](AskedService& service) { return advance(service); });
  if (!all) return;
  looked_ns = now_ns;
  // Time-outs count only after all events were read: after a stall of this thread, the replies may have arrived already.
  if (heard || unheard > kMostUnheard) {
    end_slow_calls();
    if (now_ns >= no_time_out_before_ns) time_out();
  }
  call_missing();
}

// A service that takes too long to connect becomes `away` again.
void Requester::Inside::end_slow_calls() {
  std::erase_if(unconnected, [&](AskedService* service) {
    const bool settled = service->state == State::flowing || service->state == State::removed;
    if (settled) {
      service->unconnected = false;
    } else if (service->state != State::away && now_ns - service->called_ns > kGreetingNs) {
      broken(*service, {"transport.closed", fmt::format("{} does not answer", service->name)});
    }
    return settled;
  });
}

void Requester::Inside::call_missing() {
  int calls = 0;
  for (AskedService* const service : unconnected) {
    if (service->state != State::away || (service->called_ns != 0 && now_ns - service->called_ns < kCallNs)) continue;
    call(*service);
    if (++calls == kMostCalls) return;
  }
}

// True if the service needs another visit even if nothing arrives for it.
bool Requester::Inside::advance(AskedService& service) {
  if (service.state == State::away || service.state == State::removed) return false;
  if (service.may_have_messages || !service.caller.socket.all_sent()) read(service);
  if (service.connection) {
    service.connection->replenish(service.caller.socket);
    service.connection->send();
    collect_done(service);
    short_of_credit = short_of_credit || service.connection->short_of_credit();
  }
  return service.may_have_messages || !service.caller.socket.all_sent() ||
         (service.connection && service.connection->has_work());
}

// ---- requests

void Requester::Inside::time_out() {
  no_time_out_before_ns = UINT64_MAX;
  for (const auto& service : services) {
    if (service->state == State::flowing && now_ns >= service->no_time_out_before_ns) time_out(*service);
    no_time_out_before_ns = std::min(no_time_out_before_ns, service->no_time_out_before_ns);
  }
}

void Requester::Inside::time_out(AskedService& service) {
  std::uint64_t next_ns = UINT64_MAX;
  for (Pending& pending : service.pending) {
    if (pending.state != Pending::State::waiting) continue;
    if (now_ns >= pending.deadline_ns) {
      give_up(service, pending, Outcome::timed_out);
    } else {
      next_ns = std::min(next_ns, pending.deadline_ns);
    }
  }
  service.no_time_out_before_ns = next_ns;
}

std::optional<Requester::Request> Requester::Inside::ask(Service number, std::uint16_t kind, MessageParts parts, bool copy,
                                                         std::chrono::nanoseconds patience) {
  AskedService& service = *services[number];
  if (service.state != State::flowing || service.places.empty()) return std::nullopt;
  const std::uint16_t place = service.places.back();
  service.places.pop_back();
  Pending& pending = service.pending[place];
  pending = {.state = Pending::State::waiting,
             .keeps_memory = !copy,
             .request = static_cast<Request>(number) << 48U | static_cast<Request>(++service.drawn) << 16U | place,
             .deadline_ns = base::steady_now_ns() + static_cast<std::uint64_t>(std::max<std::int64_t>(patience.count(), 0))};
  service.no_time_out_before_ns = std::min(service.no_time_out_before_ns, pending.deadline_ns);
  no_time_out_before_ns = std::min(no_time_out_before_ns, pending.deadline_ns);
  OutgoingMessage& out = service.connection->make(parts, copy);
  out.head.number = pending.request;
  out.head.type = formats::MessageType::request;
  out.head.code = kind;
  out.tag = pending.request;
  pending.out = &out;
  ++service.under_way;
  counters.add(Counter::requests);
  service.connection->queue(out);
  service.connection->send();
  if (service.connection->has_work()) active.add(service);
  return pending.request;
}

Result<void> Requester::Inside::on_reply(AskedService& service, MessageConnection::Incoming incoming) {
  using formats::MessageType;
  const std::uint16_t place = place_of(incoming.head.number);
  const bool answers = incoming.head.type == MessageType::reply || incoming.head.type == MessageType::refusal;
  if (!answers || place >= service.pending.size() || service.pending[place].request != incoming.head.number ||
      service.pending[place].state == Pending::State::free || service.pending[place].state == Pending::State::ended)
    return std::unexpected(Error{"transport.protocol", "it answered an unknown request"});
  Pending& pending = service.pending[place];
  if (pending.out != nullptr && !pending.out->given)
    return std::unexpected(Error{"transport.protocol", "it answered before it had the request"});
  if (pending.state == Pending::State::abandoned) {
    if (incoming.head.type == MessageType::reply) counters.add(Counter::late_replies);
    if (pending.out != nullptr && pending.end.request != 0) {
      pending.state = Pending::State::ended;  // the answer came before the network released the whole request
    } else {
      free(service, pending);
    }
    return {};
  }
  Reply reply{.request = pending.request,
              .service = service_of(pending.request),
              .outcome = incoming.head.type == MessageType::reply ? Outcome::answered : Outcome::refused,
              .status = incoming.head.code,
              .message = std::move(incoming.message)};
  counters.add(Counter::reply_bytes, incoming.head.message_bytes);
  end(service, pending, std::move(reply));
  return {};
}

// Gives up a request. If the service has it, the service gets a cancellation and answers. Until then the place is taken.
void Requester::Inside::give_up(AskedService& service, Pending& pending, Outcome outcome) {
  Reply reply{.request = pending.request, .service = service_of(pending.request), .outcome = outcome};
  if (pending.out != nullptr && !pending.out->given) {
    service.connection->give_up(*pending.out);
    end(service, pending, std::move(reply));
    return collect_done(service);
  }
  OutgoingMessage& cancel = service.connection->make();
  cancel.head = {.number = pending.request, .type = formats::MessageType::cancel};
  service.connection->queue(cancel);
  active.add(service);
  counters.add(outcome == Outcome::timed_out ? Counter::timed_out : Counter::cancelled);
  pending.state = Pending::State::abandoned;
  pending.end = std::move(reply);
  if (pending.out == nullptr || !pending.keeps_memory) ended.push_back(std::exchange(pending.end, {}));
}

void Requester::Inside::end(AskedService& service, Pending& pending, Reply reply) {
  switch (reply.outcome) {
    case Outcome::answered: counters.add(Counter::replies); break;
    case Outcome::refused: counters.add(Counter::refused); break;
    case Outcome::timed_out: counters.add(Counter::timed_out); break;
    case Outcome::cancelled: counters.add(Counter::cancelled); break;
    case Outcome::lost: counters.add(Counter::lost); break;
  }
  pending.end = std::move(reply);
  pending.state = Pending::State::ended;
  if (pending.out == nullptr || !pending.keeps_memory) report_end(service, pending);
}

void Requester::Inside::report_end(AskedService& service, Pending& pending) {
  ended.push_back(std::move(pending.end));
  free(service, pending);
}

void Requester::Inside::free(AskedService& service, Pending& pending) {
  if (pending.state == Pending::State::abandoned && pending.end.request != 0) ended.push_back(std::move(pending.end));
  const std::uint16_t place = place_of(pending.request);
  pending = {};
  service.places.push_back(place);
  --service.under_way;
}

// Takes back the requests whose memory the network has released.
void Requester::Inside::collect_done(AskedService& service) {
  service.connection->visit_done([&](OutgoingMessage& out) {
    if (out.head.type != formats::MessageType::request) return;
    Pending& pending = service.pending[place_of(out.tag)];
    if (pending.request != out.tag) return;  // the request was copied, and is answered already
    pending.out = nullptr;
    if (pending.state == Pending::State::ended) {
      report_end(service, pending);
    } else if (pending.state == Pending::State::abandoned && pending.end.request != 0) {
      ended.push_back(std::exchange(pending.end, {}));
    }
  });
}

// ---- public functions

Requester::Requester(RequesterSettings settings) : inside_(std::make_unique<Inside>(std::move(settings))) {}

Requester::~Requester() = default;

Requester::Service Requester::add(std::string name) {
  auto service = std::make_unique<AskedService>();
  service->name = std::move(name);
  service->pending.resize(inside_->settings.most_requests);
  service->unconnected = true;
  inside_->unconnected.push_back(service.get());
  inside_->services.push_back(std::move(service));
  return static_cast<Service>(inside_->services.size() - 1);
}

void Requester::remove(Service service) {
  AskedService& of = *inside_->services[service];
  if (of.state == AskedService::State::removed) return;
  if (of.state != AskedService::State::away) {
    of.logged = "transport.closed";  // suppresses the log line
    of.state = AskedService::State::called;
    inside_->broken(of, {"transport.closed", "it was removed"});
  }
  of.state = AskedService::State::removed;
}

bool Requester::connected(Service service) const {
  return inside_->services[service]->state == AskedService::State::flowing;
}
std::uint64_t Requester::instance(Service service) const { return inside_->services[service]->instance; }
std::uint64_t Requester::connections(Service service) const { return inside_->services[service]->connections; }
const std::string& Requester::trouble(Service service) const { return inside_->services[service]->trouble; }
std::size_t Requester::under_way(Service service) const { return inside_->services[service]->under_way; }

std::optional<Requester::Request> Requester::ask(Service service, std::uint16_t kind, std::span<const std::byte> request,
                                                 std::chrono::nanoseconds patience) {
  if (request.size() > kMostCopied) return std::nullopt;
  return inside_->ask(service, kind, {&request, 1}, true, patience);
}

std::optional<Requester::Request> Requester::ask(Service service, std::uint16_t kind, MessageParts parts,
                                                 std::chrono::nanoseconds patience) {
  return inside_->ask(service, kind, parts, false, patience);
}

void Requester::cancel(Request request) {
  const Service number = service_of(request);
  if (number >= inside_->services.size()) return;
  AskedService& service = *inside_->services[number];
  if (place_of(request) >= service.pending.size()) return;
  AskedService::Pending& pending = service.pending[place_of(request)];
  if (pending.request != request || pending.state != AskedService::Pending::State::waiting) return;
  inside_->give_up(service, pending, Outcome::cancelled);
}

void Requester::poll(std::uint64_t now_ns, std::vector<Reply>& ended) {
  inside_->now_ns = now_ns;
  inside_->handle_events();
  inside_->check();
  std::ranges::move(inside_->ended, std::back_inserter(ended));
  inside_->ended.clear();
}

std::vector<NamedCounter> Requester::counters() const {
  return base::named_counters(inside_->counters, kRequesterCounters, [](Counter) { return true; });
}

}  // namespace rodeo::transport
