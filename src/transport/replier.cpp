#include "transport/replier.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/log.h"
#include "base/named_counters.h"
#include "transport/active_list.h"
#include "transport/connection_table.h"
#include "transport/control_socket.h"
#include "transport/listener.h"
#include "transport/message_connection.h"
#include "transport/provider_choice.h"
#include "transport/random.h"
#include "transport/socket_watch.h"

namespace rodeo::transport {
namespace {

constexpr std::uint64_t kLookNs = 1'000'000;  // interval between two looks at sockets
constexpr std::uint16_t kCancelled = 0xffff;  // status of a reply to a cancelled request

/// In the order of kReplierCounters.
enum class Counter : std::uint8_t {
  requests,
  replies,
  unwanted_replies,
  clients,
  refused_peers,
  refused_version,
  refused_secret,
  refused_unreadable,
  reply_bytes,
  copied_bytes,
  count
};
static_assert(kReplierCounters.size() == static_cast<std::size_t>(Counter::count));

}  // namespace

/// A connection, with its unanswered requests.
struct AskingClient {
  enum class State : std::uint8_t { connecting, flowing, gone };
  struct Open {
    bool asked = false;  ///< the request waits for reply()
    std::uint64_t number = 0;
    const OutgoingMessage* answer = nullptr;  ///< the reply is queued or partly sent; the place is not free
  };

  Replier::Client id = 0;
  std::string name;
  std::string peer;
  ControlSocket socket;
  std::unique_ptr<MessageConnection> connection;
  State state = State::connecting;
  std::uint64_t since_ns = 0;
  std::vector<Open> open = {};     // requests by their place
  std::uint64_t copied_bytes = 0;  // copied bytes that the counter contains
  std::uint64_t sent_bytes = 0;
  bool active = false;             // ActiveList uses it
  bool may_have_messages = false;  // the socket may have messages
};

struct Replier::Inside {
  using Open = AskingClient::Open;
  using State = AskingClient::State;

  explicit Inside(ReplierSettings of)
      : settings(std::move(of)),
        listener({.name = settings.name, .address = settings.address, .secret = settings.secret, .ports = PortSize::many}) {
    if (settings.providers.empty()) settings.providers = offered_providers(Here::detect());
    listener.advertise(settings.bus.empty() ? default_bus() : settings.bus,
                       {.providers = settings.providers, .page_bytes = settings.page_bytes, .service = settings.service});
  }

  Result<void> on_call(ControlSocket& socket, const formats::ControlCall& call);
  void handle_events(std::vector<Request>& requests);
  Result<void> on_request(AskingClient& client, MessageConnection::Incoming incoming, std::vector<Request>& requests);
  Result<void> on_cancel(AskingClient& client, std::uint64_t number);
  Result<void> on_message(AskingClient& client, const formats::ControlMessage& message);
  Result<void> read(AskingClient& client);
  void check(bool all);
  bool advance(AskingClient& client);
  void remove_gone();
  void end(AskingClient& client, const Error& why);
  void answer(AskingClient& client, std::uint64_t number, formats::MessageType type, std::uint16_t status,
              MessageParts parts, ReplyOwner* owner, std::uint64_t tag);
  AskingClient* asked_by(Client client, std::uint64_t number);
  void collect_done(AskingClient& client);

  ReplierSettings settings;
  Listener listener;
  ConnectionTable<AskingClient> connections;
  SocketWatch watch;
  ActiveList<AskingClient> active;      // clients with work; poll() visits no others
  std::vector<AskingClient*> arriving;  // clients that are not connected yet
  bool short_of_credit = false;         // a client lacks credit; the next message on its socket may give some
  bool heard_all = true;
  std::unordered_map<Client, std::unique_ptr<AskingClient>> clients;  // their connections end before the ports
  std::vector<Client> ending;
  std::vector<Dropped> dropped;  // returned by the next poll()
  Client drawn = 0;
  std::uint64_t now_ns = 0;
  std::uint64_t looked_ns = 0;
  base::CounterBlock<Counter> counters;
};

// ---- clients

Result<void> Replier::Inside::on_call(ControlSocket& socket, const formats::ControlCall& call) {
  if (clients.size() >= settings.most_clients) {
    return std::unexpected(
        Error{"transport.too_many", fmt::format("{} has {} clients, and takes no more", settings.name, clients.size())});
  }
  if (call.pages == 0 || call.requests == 0)
    return std::unexpected(Error{"transport.protocol", "it has no room for a reply"});
  const std::uint32_t most_requests = std::min(call.requests, settings.most_requests);
  FabricPort* const port = RODEO_TRY(listener.port_of(call.provider));
  auto client = std::make_unique<AskingClient>();
  const MessageConnection::Settings memory{.page_bytes = settings.page_bytes,
                                           .pages = settings.pages,
                                           .most_bytes = settings.most_request_bytes,
                                           .wake = [this, of = client.get()] { active.add(*of); }};
  auto connection = RODEO_TRY(MessageConnection::open(*port, memory));
  const FabricAddress where_listened = port->listens_at();
  const formats::ControlAccept accept{
      .token = random_bytes<16>(),
      .address = where_listened.empty() ? port->address(connection->number()) : where_listened,
      .page_bytes = settings.page_bytes,
      .pages = most_requests};
  RODEO_TRY(port->accept(connection->number(), accept.token, call.address));
  RODEO_TRY(watch.add(socket, client.get()));
  *client = {.id = ++drawn,
             .name = call.name,
             .peer = socket.peer(),
             .socket = std::move(socket),
             .connection = std::move(connection),
             .since_ns = now_ns};
  client->open.resize(most_requests);
  client->socket.say(accept);
  client->may_have_messages = true;  // the socket's own buffer may have messages after the call
  active.add(*client);
  arriving.push_back(client.get());
  connections.put(*port, client->connection->number(), client.get());
  clients.emplace(client->id, std::move(client));
  counters.add(Counter::clients);
  return {};
}

void Replier::Inside::handle_events(std::vector<Request>& requests) {
  heard_all = connections.poll(listener.ports(), [&](AskingClient& client, const FabricPort::Event& event) {
    if (client.state == State::gone) return;
    active.add(client);
    auto incoming = client.connection->on_event(event);
    if (!incoming) return end(client, incoming.error());
    if (event.what == FabricPort::Event::What::connected) client.state = State::flowing;
    if (!*incoming) return;
    if (const auto taken = on_request(client, *std::move(*incoming), requests); !taken) end(client, taken.error());
  });
}

Result<void> Replier::Inside::read(AskingClient& client) {
  // The watch does not see the socket's own buffer, which may have more messages.
  client.may_have_messages =
      !RODEO_TRY(client.socket.read([&](const formats::ControlMessage& message) { return on_message(client, message); }));
  return {};
}

Result<void> Replier::Inside::on_message(AskingClient& client, const formats::ControlMessage& message) {
  const auto* const credit = std::get_if<formats::ControlCredit>(&message);
  if (credit == nullptr) return std::unexpected(Error{"transport.protocol", "it sent a message that is not allowed here"});
  client.connection->credit(credit->pages);
  return {};
}

void Replier::Inside::check(bool all) {
  if (all && heard_all) {
    std::erase_if(arriving, [&](AskingClient* client) {
      if (client->state == State::connecting && now_ns - client->since_ns > kGreetingNs)
        end(*client, {"transport.closed", "it did not connect"});
      return client->state != State::connecting;
    });
  }
  if (all || short_of_credit) {
    watch.ready([&](void* whose) {
      auto& client = *static_cast<AskingClient*>(whose);
      client.may_have_messages = true;
      active.add(client);
    });
  }
  short_of_credit = false;
  active.visit([&](AskingClient& client) { return advance(client); });
}

// True if the client needs another visit even if nothing arrives for it.
bool Replier::Inside::advance(AskingClient& client) {
  if (client.state == State::gone) return false;
  if (client.may_have_messages || !client.socket.all_sent()) {
    if (const auto heard = read(client); !heard) {
      end(client, heard.error());
      return false;
    }
  }
  client.connection->replenish(client.socket);
  client.connection->send();
  collect_done(client);
  short_of_credit = short_of_credit || client.connection->short_of_credit();
  return client.may_have_messages || !client.socket.all_sent() || client.connection->has_work();
}

void Replier::Inside::remove_gone() {
  for (const Client id : ending) {
    const auto client = clients.find(id);
    active.remove(*client->second);
    std::erase(arriving, client->second.get());
    clients.erase(client);
  }
  ending.clear();
}

void Replier::Inside::end(AskingClient& client, const Error& why) {
  if (client.state == State::gone) return;
  if (why.code != "transport.closed") {
    Refusals::from_code(why.code).count(counters);
    base::log_warning("{}: client {} at {} is cut off: {}", settings.name, client.name, client.peer, why.what);
  }
  client.state = State::gone;
  connections.remove(client.connection->port(), client.connection->number());
  client.connection->close();
  collect_done(client);
  for (Open& open : client.open) {
    if (open.asked) {
      dropped.push_back({client.id, open.number});
      counters.add(Counter::unwanted_replies);
    }
    open = {};
  }
  watch.remove(client.socket);
  client.socket.close();
  ending.push_back(client.id);
}

// ---- requests

Result<void> Replier::Inside::on_request(AskingClient& client, MessageConnection::Incoming incoming,
                                         std::vector<Request>& requests) {
  const std::uint64_t number = incoming.head.number;
  const std::size_t place = static_cast<std::uint16_t>(number);
  if (place >= client.open.size())
    return std::unexpected(Error{"transport.protocol", "its request has a place above the limit"});
  if (incoming.head.type == formats::MessageType::cancel) return on_cancel(client, number);
  if (incoming.head.type != formats::MessageType::request)
    return std::unexpected(Error{"transport.protocol", "it sent a reply, which only services send"});
  if (client.open[place].asked) return std::unexpected(Error{"transport.protocol", "its request has a place that is taken"});
  if (client.open[place].answer != nullptr && !client.open[place].answer->given)
    return std::unexpected(Error{"transport.protocol", "its request has a place whose reply is not sent yet"});
  client.open[place] = {.asked = true, .number = number};
  counters.add(Counter::requests);
  requests.push_back({client.id, number, incoming.head.code, std::move(incoming.message)});
  return {};
}

Result<void> Replier::Inside::on_cancel(AskingClient& client, std::uint64_t number) {
  Open& open = client.open[static_cast<std::uint16_t>(number)];
  if (!open.asked || open.number != number) return {};  // the reply is on the way
  dropped.push_back({client.id, number});
  counters.add(Counter::unwanted_replies);
  answer(client, number, formats::MessageType::refusal, kCancelled, {}, nullptr, 0);
  return {};
}

AskingClient* Replier::Inside::asked_by(Client id, std::uint64_t number) {
  const auto client = clients.find(id);
  if (client == clients.end() || client->second->state == State::gone) return nullptr;
  const std::size_t place = static_cast<std::uint16_t>(number);
  if (place >= client->second->open.size()) return nullptr;
  const Open& open = client->second->open[place];
  return open.asked && open.number == number ? client->second.get() : nullptr;
}

void Replier::Inside::answer(AskingClient& client, std::uint64_t number, formats::MessageType type, std::uint16_t status,
                             MessageParts parts, ReplyOwner* owner, std::uint64_t tag) {
  OutgoingMessage& out = client.connection->make(parts, owner == nullptr);
  out.owner = owner;
  out.tag = tag;
  out.head.number = number;
  out.head.type = type;
  out.head.code = status;
  client.open[static_cast<std::uint16_t>(number)] = {.number = number, .answer = &out};
  client.connection->queue(out);
  client.connection->send();
  collect_done(client);
  if (client.connection->has_work()) active.add(client);
}

// Takes back the replies whose memory the network has released.
void Replier::Inside::collect_done(AskingClient& client) {
  client.connection->visit_done([&](OutgoingMessage& out) {
    const bool whole = out.head.offset == out.head.message_bytes && out.begun;
    const bool cancelled = out.head.type == formats::MessageType::refusal && out.head.code == kCancelled;
    if (!cancelled) counters.add(whole ? Counter::replies : Counter::unwanted_replies);
    Open& open = client.open[static_cast<std::uint16_t>(out.head.number)];
    if (open.answer == &out) open.answer = nullptr;
    if (out.owner != nullptr) out.owner->sent(out.tag);
  });
  counters.add(Counter::reply_bytes, client.connection->sent_bytes() - client.sent_bytes);
  counters.add(Counter::copied_bytes, client.connection->copied_bytes() - client.copied_bytes);
  client.sent_bytes = client.connection->sent_bytes();
  client.copied_bytes = client.connection->copied_bytes();
}

// ---- public functions

Replier::Replier(ReplierSettings settings) : inside_(std::make_unique<Inside>(std::move(settings))) {}

Replier::~Replier() {
  for (const auto& [id, client] : inside_->clients) inside_->end(*client, {"transport.closed", "the service ends"});
}

void Replier::poll(std::uint64_t now_ns, std::vector<Request>& requests, std::vector<Dropped>& dropped) {
  Inside& in = *inside_;
  in.now_ns = now_ns;
  in.handle_events(requests);
  const bool all = now_ns - in.looked_ns >= kLookNs;
  in.check(all);
  if (all) {
    in.looked_ns = now_ns;
    const auto on_peer = [&](ControlSocket& socket, const formats::ControlMessage& said) -> Result<void> {
      if (const auto* const call = std::get_if<formats::ControlCall>(&said)) return in.on_call(socket, *call);
      return std::unexpected(
          Error{"transport.protocol", fmt::format("{} is a service, and publishes no links", in.settings.name)});
    };
    in.listener.poll(now_ns, on_peer).count(in.counters);
  }
  in.remove_gone();
  dropped.insert(dropped.end(), in.dropped.begin(), in.dropped.end());
  in.dropped.clear();
}

bool Replier::was_dropped(const Request& request, const std::vector<Dropped>& dropped) {
  return std::ranges::any_of(
      dropped, [&](const Dropped& one) { return one.client == request.client && one.number == request.number; });
}

void Replier::reply(Client client, std::uint64_t number, std::uint16_t status, MessageParts parts, ReplyOwner* owner,
                    std::uint64_t tag) {
  AskingClient* const asked = inside_->asked_by(client, number);
  if (asked == nullptr) {
    if (owner != nullptr) owner->sent(tag);
    return;
  }
  inside_->answer(*asked, number, formats::MessageType::reply, status, parts, owner, tag);
}

void Replier::refuse(Client client, std::uint64_t number, std::uint16_t status) {
  AskingClient* const asked = inside_->asked_by(client, number);
  if (asked == nullptr) return;
  inside_->answer(*asked, number, formats::MessageType::refusal, status, {}, nullptr, 0);
}

void Replier::cut_off(Client client, const std::string& why) {
  const auto found = inside_->clients.find(client);
  if (found != inside_->clients.end()) inside_->end(*found->second, {"transport.too_slow", why});
}

bool Replier::heard_all() const { return inside_->heard_all; }

std::string_view Replier::client_name(Client client) const {
  const auto found = inside_->clients.find(client);
  return found == inside_->clients.end() ? std::string_view{} : found->second->name;
}

std::vector<Replier::Client> Replier::clients() const {
  std::vector<Client> all;
  for (const auto& [id, client] : inside_->clients) {
    if (client->state == AskingClient::State::flowing) all.push_back(id);
  }
  return all;
}

std::uint64_t Replier::sent_bytes(Client client) const {
  const auto found = inside_->clients.find(client);
  return found == inside_->clients.end() ? 0 : found->second->connection->sent_bytes();
}

std::vector<NamedCounter> Replier::counters() const {
  return base::named_counters(inside_->counters, kReplierCounters, [](Counter) { return true; });
}

}  // namespace rodeo::transport
