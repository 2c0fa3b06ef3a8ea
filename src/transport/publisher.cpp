#include "transport/publisher.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/arena.h"
#include "base/counters.h"
#include "base/log.h"
#include "base/named_counters.h"
#include "transport/bus.h"
#include "transport/control_socket.h"
#include "transport/fabric.h"
#include "transport/provider_choice.h"
#include "transport/random.h"
#include "transport/reception.h"
#include "transport/subscription.h"

namespace rodeo::transport {
namespace {

constexpr std::uint64_t kLookNs = 1'000'000;       // between two looks at sockets
constexpr std::uint64_t kClockPageNs = 2'000'000;  // between clock pages of a silent publisher
constexpr std::uint64_t kSnapshotNs = 100'000'000;
constexpr std::size_t kMostDeparted = 16;
constexpr std::string_view kFabricIsGone = "the fabric's connection is gone";
constexpr int kMostMessages = 64;  // of one subscriber at a time: one that sends many must not delay the others

/// In the order of kPublisherCounters.
enum class Counter : std::uint8_t {
  chunks_wanted,
  chunks_published,
  no_subscriber,
  undelivered,
  monitor_chunks_dropped,
  pages_sent,
  pages_full,  // first of the reasons, in the order of Flush
  pages_by_time,
  pages_of_clock,
  pages_at_end,
  pages_unbuffered,
  bytes_sent,
  waits,
  refused_peers,
  refused_version,
  refused_secret,
  refused_unreadable,
  wanted_bytes,
  no_subscriber_bytes,
  count
};
static_assert(kPublisherCounters.size() == static_cast<std::size_t>(Counter::count));

/// The counts of chunks [from, to) of a run. A chunk in parts counts with its last part, its bytes with each.
LinkTally part_of(const ChunkRun& run, std::uint32_t from, std::uint32_t to) {
  ChunkRun part = run;
  part.count = to - from;
  if (part.entries != nullptr) part.entries += from;
  LinkTally tally = tally_of(part);
  if (part.count == 0) tally.chunks = 0;
  return tally;
}

}  // namespace

/// A subscription that has a connection or waits for one.
struct Client {
  enum class State : std::uint8_t {
    connecting,  ///< accepted; waits for the fabric's connection
    flowing,
    cut,      ///< the fabric's connection is gone; reads the subscriber's last messages
    leaving,  ///< END was sent; waits until the subscriber closes
    held,     ///< the connection is gone; data wait for the next one
    gone,
  };
  base::Arena memory;
  Subscription subscription;
  State state = State::connecting;
  ControlSocket socket = {};
  FabricPort* port = nullptr;
  FabricPort::Connection connection = 0;
  std::uint64_t credit = 0;  // pages that may be sent on this connection
  std::uint64_t sent = 0;
  std::uint64_t under_way = 0;
  std::uint64_t opened_ns = 0;  // when the open page got its first run
  std::uint64_t last_page_ns = 0;
  std::uint64_t connecting_since_ns = 0;
  std::uint64_t away_since_ns = 0;  // 0: flowing, or no look yet since
  bool flowed = false;              // in this session
  std::uint64_t bytes = 0;
  bool leaves = false;  // the subscriber asked for the end
  std::uint64_t waits = 0;
  std::uint64_t had_run = 0;     // number of the last run that is in its pages
  formats::RunPlace place = {};  // in the run that is being appended
  std::string peer = {};
};

/// Sums over subscriptions, those that are gone included.
struct Totals {
  std::uint64_t dropped = 0;
  std::uint64_t published = 0;
  FlushCounts flushes{};

  void add(const Subscription& of) {
    dropped += of.dropped_chunks();
    published += of.chunks();
    for (std::size_t i = 0; i < flushes.size(); ++i) flushes[i] += of.flushes()[i];
  }
};

struct Publisher::Inside {
  enum class Demand : std::uint8_t { none, monitor, data };
  struct Target {
    Client* client;
    std::uint16_t position;
  };

  Inside(PublisherSettings of, std::span<const Fid> all, bool list)
      : settings(std::move(of)),
        trigger_list(list),
        instance(random_number()),
        links(all.begin(), all.end()),
        link_counters(all.size()) {
    for (std::size_t i = 0; i < links.size(); ++i) index[links[i]] = static_cast<LinkIndex>(i);
    targets.resize(links.size());
    begun.resize(links.size());
    demand.resize(links.size());
    const Here here = Here::look();
    if (settings.providers.empty()) settings.providers = offered_providers(here);
    if (auto refused = refuse_open_address(settings); !refused) throw SetupError(refused.error());
    reception.emplace(need(ControlListener::open(settings.address)), instance, settings.secret, settings.name);
    advertisement = need(Advertisement::put(
        settings.bus,
        {.name = settings.name,
         .instance = instance,
         .host = here.host,
         .pid = here.pid,
         .address = settings.address,
         .port = reception->port(),
         .providers = settings.providers,
         .page_bytes = settings.page_bytes,
         .max_chunk_bytes = settings.max_chunk_bytes,
         .program = "rodeo",
         .unix_time = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(),
         .trigger_list = trigger_list,
         .links = links}));
  }

  template <typename T>
  static T need(Result<T> result) {
    if (!result) throw SetupError(std::move(result.error()));
    return std::move(*result);
  }

  // ---- runs

  bool publish(std::span<const ChunkRun> runs);
  LinkTally give_up(std::span<const ChunkRun> runs);
  std::uint32_t put_aside(LinkIndex link);
  const Client* waits_for() const;

  // ---- events and messages

  void take_events();
  Result<void> subscribe(ControlSocket& guest, formats::ControlSubscribe wish, std::uint64_t now_ns);
  Result<FabricPort*> port_of(const std::string& provider);
  void let_former_life_go(const formats::ControlSubscribe& wish);
  Result<void> connect(Client& client, std::uint64_t now_ns, bool resumed);
  void look_at(Client& client, std::uint64_t now_ns);
  bool is_old(const Client& client, std::uint64_t now_ns) const;
  void listen_to(Client& client);
  void send(Client& client, std::uint64_t now_ns);
  void finish(Client& client);
  void cut(Client& client);
  void broken(Client& client, std::string_view why);
  void close_fabric(Client& client);
  void disconnect(Client& client);
  void retarget();
  static Subscriber seen(const Client& client);
  void take_snapshot();

  PublisherSettings settings;
  const bool flushes_between_looks = settings.flush < std::chrono::nanoseconds{kLookNs};
  const bool trigger_list;
  const std::uint64_t instance;
  std::vector<Fid> links;
  std::unordered_map<Fid, LinkIndex> index;
  std::optional<Reception> reception;
  std::optional<Advertisement> advertisement;
  std::map<std::string, std::unique_ptr<FabricPort>> ports;  // outlives the clients' connections
  std::vector<std::unique_ptr<Client>> clients;
  std::vector<Subscriber> departed;  // the latest last

  std::vector<std::vector<Target>> targets;  // by link
  std::vector<LinkCounters> link_counters;
  std::vector<std::uint8_t> begun;  // by link: the last run ended in the middle of a chunk
  std::vector<Demand> demand;
  std::uint64_t demand_changes = 0;
  bool demand_is_old = false;  // made anew when no loop over the clients is active

  std::size_t at_run = 0;           // index of the run at which publish() stopped
  std::uint64_t run_number = 0;     // number of the run that is being published, or was last
  std::optional<ChunkRun> in_hand;  // the run itself: only some subscribers have it yet
  std::uint32_t in_pages = 0;       // its chunks that at least one subscriber has

  std::uint64_t clock_ns = 0;
  std::uint64_t now_ns = 0;
  std::uint64_t looked_ns = 0;
  std::uint64_t snapshot_ns = 0;
  bool ending = false;
  Totals of_gone;

  base::CounterBlock<Counter> counters;
  mutable std::mutex snapshot_lock;
  std::vector<Subscriber> snapshot;
};

// ---- runs

bool Publisher::Inside::publish(std::span<const ChunkRun> runs) {
  LinkTally wanted;
  LinkTally nobodys;
  const auto count = [&] {
    counters.add(Counter::chunks_wanted, wanted.chunks);
    counters.add(Counter::no_subscriber, nobodys.chunks);
    counters.add(Counter::wanted_bytes, wanted.bytes);
    counters.add(Counter::no_subscriber_bytes, nobodys.bytes);
  };
  for (; at_run < runs.size(); ++at_run) {
    const ChunkRun& run = runs[at_run];
    if (!in_hand) {
      ++run_number;
      in_pages = 0;
    }
    LinkCounters& link = link_counters[run.link];
    const std::uint32_t number = link.number();
    for (const Target& target : targets[run.link]) {
      Client& client = *target.client;
      if (client.had_run == run_number || client.state == Client::State::gone) continue;
      const bool opens = !client.subscription.ring().has_runs();
      if (!client.subscription.append(target.position, number, run, client.place)) {
        send(client, now_ns);
        take_events();
        if (!client.subscription.append(target.position, number, run, client.place)) {
          counters.add(Counter::waits);
          ++client.waits;
          in_hand = run;
          count();
          return false;
        }
      }
      if (opens) client.opened_ns = now_ns;
      // A client that has left, or a monitor without room, has only a part of the run in its pages.
      in_pages = std::max(in_pages, client.place.chunk);
      client.had_run = run_number;
      client.place = {};
    }
    in_hand.reset();
    if (in_pages == run.count) {
      wanted += tally_of(run);
    } else if (in_pages == 0) {
      nobodys += tally_of(run);
    } else {
      wanted += part_of(run, 0, in_pages);
      nobodys += part_of(run, in_pages, run.count);
    }
    link.count(run);
    begun[run.link] = run.more_follows;
  }
  at_run = 0;
  count();
  return true;
}

// Appends nothing more of the run in hand. Returns the number of its chunks that at least one subscriber has.
std::uint32_t Publisher::Inside::put_aside(LinkIndex link) {
  for (const Target& target : targets[link]) in_pages = std::max(in_pages, std::exchange(target.client->place, {}).chunk);
  in_hand.reset();
  return in_pages;
}

LinkTally Publisher::Inside::give_up(std::span<const ChunkRun> runs) {
  LinkTally given_up;
  for (; at_run < runs.size(); ++at_run) {
    const ChunkRun& run = runs[at_run];
    std::uint32_t taken = 0;
    if (in_hand) {
      taken = put_aside(run.link);
      const LinkTally of_pages = part_of(run, 0, taken);
      counters.add(Counter::chunks_wanted, of_pages.chunks);
      counters.add(Counter::wanted_bytes, of_pages.bytes);
    }
    given_up += part_of(run, taken, run.count);
    link_counters[run.link].count(run);
    begun[run.link] = run.more_follows;
  }
  at_run = 0;
  return given_up;
}

// The first subscriber that lacks a part of the run in hand. The others receive clock pages and take the run.
const Client* Publisher::Inside::waits_for() const {
  if (!in_hand) return nullptr;
  const auto slow = std::ranges::find_if(targets[in_hand->link], [&](const Target& target) {
    return target.client->had_run != run_number && target.client->state != Client::State::gone;
  });
  return slow == targets[in_hand->link].end() ? nullptr : slow->client;
}

// Sends full pages as far as there is credit.
void Publisher::Inside::send(Client& client, std::uint64_t now) {
  if (client.state != Client::State::flowing) return;
  PageRing& ring = client.subscription.ring();
  while (client.sent < client.credit) {
    const auto page = ring.next();
    if (!page || !client.port->send(client.connection, page->slot, page->bytes)) break;
    ring.sending();
    ++client.sent;
    ++client.under_way;
    client.bytes += page->bytes;
    client.last_page_ns = now;
    counters.add(Counter::pages_sent);
    counters.add(Counter::bytes_sent, page->bytes);
  }
}

// ---- events and messages

void Publisher::Inside::take_events() {
  std::array<FabricPort::Event, 32> events;
  for (const auto& [name, port] : ports) {
    const std::size_t count = port->poll(events);
    for (const FabricPort::Event& event : std::span(events).first(count)) {
      const auto of = std::ranges::find_if(
          clients, [&](const auto& client) { return client->port == port.get() && client->connection == event.connection; });
      if (of == clients.end()) continue;
      Client& client = **of;
      switch (event.what) {
        case FabricPort::Event::What::connected:
          if (client.state != Client::State::connecting) break;
          client.state = Client::State::flowing;
          client.flowed = true;
          client.away_since_ns = 0;
          break;
        case FabricPort::Event::What::sent:
          client.subscription.ring().sent(event.slot);
          --client.under_way;
          break;
        case FabricPort::Event::What::broken: cut(client); break;
        case FabricPort::Event::What::received: break;
      }
    }
  }
}

Result<FabricPort*> Publisher::Inside::port_of(const std::string& provider) {
  if (std::ranges::find(settings.providers, provider) == settings.providers.end()) {
    return std::unexpected(
        Error{"transport.provider", fmt::format("publisher {} does not offer the provider `{}`", settings.name, provider)});
  }
  auto port = ports.find(provider);
  if (port == ports.end()) port = ports.emplace(provider, RODEO_TRY(open_fabric(provider, settings.address))).first;
  return port->second.get();
}

Result<void> Publisher::Inside::subscribe(ControlSocket& guest, formats::ControlSubscribe wish, std::uint64_t now) {
  const auto known = std::ranges::find_if(clients, [&](const auto& client) {
    return client->state != Client::State::gone && client->subscription.wish().session == wish.session;
  });
  const bool resumed = known != clients.end();
  Client* client = nullptr;
  if (resumed) {
    client = known->get();
    if (client->subscription.wish().links != wish.links || client->subscription.wish().monitor != wish.monitor) {
      return std::unexpected(Error{"transport.session", "this session has other links"});
    }
    if (!client->subscription.ring().taken(wish.taken))
      return std::unexpected(Error{"transport.protocol", "this session was sent fewer pages"});
    disconnect(*client);
    client->subscription.resume(std::move(wish));
  } else if (clients.size() >= settings.most_subscribers) {
    return std::unexpected(Error{"transport.too_many", fmt::format("publisher {} has {} subscribers, and takes no more",
                                                                   settings.name, clients.size())});
  } else {
    std::vector<LinkIndex> positions;
    for (const Fid fid : wish.links) {
      const auto found = index.find(fid);
      if (found == index.end()) {
        return std::unexpected(
            Error{"transport.unknown_link", fmt::format("publisher {} has no link {:#018x}", settings.name, fid.value)});
      }
      positions.push_back(found->second);
    }
    const std::uint32_t pages = std::clamp<std::uint32_t>(wish.pages, 2, settings.pages);
    auto memory = RODEO_TRY(base::Arena::create(std::size_t{pages} * settings.page_bytes));
    const std::span bytes(memory.data(), memory.size());
    std::vector<std::uint32_t> numbers;
    for (const LinkCounters& link : link_counters) numbers.push_back(link.number());
    std::vector<std::uint8_t> in_chunk = begun;
    if (in_hand) {  // this subscription begins after the run that is in hand
      numbers[in_hand->link] += in_hand->more_follows ? 0 : in_hand->count;
      in_chunk[in_hand->link] = in_hand->more_follows;
    }
    if (!wish.monitor) let_former_life_go(wish);
    clients.push_back(std::make_unique<Client>(
        std::move(memory),
        Subscription(std::move(wish), std::move(positions), bytes, settings.page_bytes, numbers, in_chunk, clock_ns)));
    client = clients.back().get();
    client->had_run = run_number;
  }
  client->socket = std::move(guest);
  client->peer = client->socket.peer();
  if (auto connected = connect(*client, now, resumed); !connected) {
    guest = std::move(client->socket);
    // A client that came back may try again with another network: its data stay.
    client->state = resumed ? Client::State::held : Client::State::gone;
    retarget();
    return connected;
  }
  retarget();
  return {};
}

// A process that was started anew has another session and does not ask for the data held for the old one: these are
// released.
void Publisher::Inside::let_former_life_go(const formats::ControlSubscribe& wish) {
  for (const auto& client : clients) {
    const formats::ControlSubscribe& before = client->subscription.wish();
    const bool away = client->state == Client::State::held || client->state == Client::State::cut;
    if (!away || before.monitor || before.name != wish.name || before.links != wish.links) continue;
    base::log_warning("publisher {}: subscriber {} was restarted: {} chunks held for it before are undelivered",
                      settings.name, wish.name, client->subscription.untaken_chunks());
    disconnect(*client);
    client->state = Client::State::gone;
  }
}

Result<void> Publisher::Inside::connect(Client& client, std::uint64_t now, bool resumed) {
  const formats::ControlSubscribe& wish = client.subscription.wish();
  FabricPort* const port = RODEO_TRY(port_of(wish.provider));
  // The port is assigned last: without a connection of this client, its number may belong to another one.
  client.connection = RODEO_TRY(port->open({client.memory.data(), client.memory.size()}, settings.page_bytes));
  client.port = port;
  formats::ControlAccept accept{.resumed = resumed,
                                .token = random_bytes<16>(),
                                .address = client.port->listens_at(),
                                .page_bytes = settings.page_bytes,
                                .pages = client.subscription.ring().slots()};
  if (auto accepted = client.port->accept(client.connection, accept.token, wish.address); !accepted) {
    client.port->close(client.connection);
    client.port = nullptr;
    return accepted;
  }
  client.state = Client::State::connecting;
  client.connecting_since_ns = now;
  client.credit = client.sent = client.under_way = 0;
  client.leaves = false;
  client.last_page_ns = now;
  client.socket.say(accept);
  return {};
}

void Publisher::Inside::look_at(Client& client, std::uint64_t now) {
  // Counts from the first look: now_ns may have been old when the connection ended. A client that reconnects but never flows
  // counts as away throughout.
  const bool away =
      client.state == Client::State::held || client.state == Client::State::cut || client.state == Client::State::connecting;
  if (away && client.away_since_ns == 0) client.away_since_ns = now;
  const bool over = away && now - client.away_since_ns >= static_cast<std::uint64_t>(settings.grace.count());
  if (client.state == Client::State::held) {
    if (over) {
      base::log_warning("publisher {}: subscriber {} {}; its subscription ends", settings.name,
                        client.subscription.wish().name, client.flowed ? "has not come back" : "did not connect");
      client.state = Client::State::gone;
    }
    return;
  }
  if (client.state == Client::State::gone) return;
  listen_to(client);
  if (client.state == Client::State::cut && over) {  // it sent nothing more and did not close
    disconnect(client);
    client.state = Client::State::held;
  }
  if (client.state == Client::State::connecting && now - client.connecting_since_ns > kGreetingNs)
    broken(client, "the fabric's connection was not made in time");
  if (client.state != Client::State::flowing) return;
  const bool old = is_old(client, now);
  // Not if pages wait that carry the time already: a clock page would take the room of chunks.
  const bool silent = now - client.last_page_ns >= kClockPageNs && client.subscription.ring().filled() == 0;
  if (old || silent || ending || client.leaves) {
    const Flush why = ending || client.leaves ? Flush::end : old ? Flush::time : Flush::clock;
    (void)client.subscription.close_page(clock_ns, why);
    send(client, now);
  }
  if ((ending || client.leaves) && client.state == Client::State::flowing) finish(client);
}

// True if the open page has waited for `flush`.
bool Publisher::Inside::is_old(const Client& client, std::uint64_t now) const {
  return client.subscription.ring().has_runs() &&
         now - client.opened_ns >= static_cast<std::uint64_t>(settings.flush.count());
}

// Sends END once the subscriber has everything.
void Publisher::Inside::finish(Client& client) {
  if (!client.subscription.ring().empty() || client.under_way > 0) return;
  formats::ControlEnd end{.pages = client.sent};
  for (const NamedCounter& lost : settings.losses ? settings.losses() : std::vector<NamedCounter>{}) {
    if (lost.value > 0 && end.losses.size() < formats::kMostControlLosses) end.losses.push_back({lost.name, lost.value});
  }
  client.socket.say(std::move(end));
  client.state = Client::State::leaving;
}

void Publisher::Inside::listen_to(Client& client) {
  client.socket.flush();
  for (int i = 0; i < kMostMessages; ++i) {
    auto message = client.socket.next();
    if (!message) {
      if (message.error().code != "transport.closed") Refusals::of(message.error().code).count(counters);
      broken(client, message.error().what);
      return;
    }
    if (!*message) return;
    if (const auto* credit = std::get_if<formats::ControlCredit>(&**message);
        credit != nullptr && client.subscription.ring().taken(credit->taken)) {
      client.credit = std::max(client.credit, credit->pages);
    } else if (std::holds_alternative<formats::ControlLeave>(**message)) {
      // It gets no chunks from now on, but still those in pages.
      client.leaves = true;
      client.subscription.leave();
      demand_is_old = true;
    } else {
      Refusals::of("transport.protocol").count(counters);
      broken(client, "it sent a message that is not allowed here");
      return;
    }
  }
}

void Publisher::Inside::close_fabric(Client& client) {
  if (client.port != nullptr) client.port->close(client.connection);
  client.port = nullptr;
  client.under_way = 0;
  client.subscription.ring().unsend();
}

void Publisher::Inside::disconnect(Client& client) {
  close_fabric(client);
  client.socket.close();
}

// The subscriber may have reported more pages on the control connection, which may be slower. Ends our direction; the
// subscriber then closes the connection.
void Publisher::Inside::cut(Client& client) {
  if (client.state != Client::State::flowing) return broken(client, kFabricIsGone);
  close_fabric(client);
  client.socket.say_no_more();
  client.state = Client::State::cut;
}

void Publisher::Inside::broken(Client& client, std::string_view why) {
  const bool was_cut = client.state == Client::State::cut;
  const bool flowed = was_cut || client.state == Client::State::flowing;
  if (was_cut) why = kFabricIsGone;
  const bool over = client.state == Client::State::leaving || client.leaves || client.subscription.wish().monitor;
  disconnect(client);
  client.state = over ? Client::State::gone : Client::State::held;
  // Attempts that never flowed are not logged: there may be many.
  if (!over && flowed) {
    base::log_warning("publisher {}: subscriber {} at {} is gone ({}); its data wait for {} s", settings.name,
                      client.subscription.wish().name, client.peer, why,
                      std::chrono::duration<double>(settings.grace).count());
  }
}

// Rebuilds the list of subscribers of each link. Removes clients that are gone.
void Publisher::Inside::retarget() {
  std::erase_if(clients, [&](const auto& client) {
    if (client->state != Client::State::gone) return false;
    const Subscription& of = client->subscription;
    if (in_hand) in_pages = std::max(in_pages, client->place.chunk);
    of_gone.add(of);
    if (of.wish().monitor) {
      of_gone.dropped += of.untaken_chunks();
    } else {
      counters.add(Counter::undelivered, of.untaken_chunks());
    }
    if (departed.size() == kMostDeparted) departed.erase(departed.begin());
    departed.push_back(seen(*client));
    return true;
  });
  std::vector<Demand> before = std::exchange(demand, std::vector<Demand>(links.size(), Demand::none));
  for (std::vector<Target>& of : targets) of.clear();
  for (const auto& client : clients) {
    const Subscription& subscription = client->subscription;
    for (std::size_t position = 0; position < subscription.links().size(); ++position) {
      const LinkIndex link = subscription.links()[position];
      targets[link].push_back({client.get(), static_cast<std::uint16_t>(position)});
      if (!subscription.left())
        demand[link] = std::max(demand[link], subscription.wish().monitor ? Demand::monitor : Demand::data);
    }
  }
  if (demand != before) ++demand_changes;
}

Publisher::Subscriber Publisher::Inside::seen(const Client& client) {
  const Subscription& subscription = client.subscription;
  return {.name = subscription.wish().name,
          .peer = client.peer,
          .provider = subscription.wish().provider,
          .monitor = subscription.wish().monitor,
          .connected = client.state == Client::State::flowing || client.state == Client::State::leaving,
          .gone = client.state == Client::State::gone,
          .links = subscription.links().size(),
          .chunks = subscription.chunks(),
          .bytes = client.bytes,
          .pages = subscription.ring().closed(),
          .page_slots = subscription.ring().slots(),
          .pages_filled = subscription.ring().filled(),
          .page_bytes = subscription.ring().page_bytes(),
          .dropped_chunks = subscription.dropped_chunks(),
          .waits = client.waits,
          .pending_chunks = subscription.untaken_chunks()};
}

void Publisher::Inside::take_snapshot() {
  std::vector<Subscriber> now = departed;
  Totals totals = of_gone;
  for (const auto& client : clients) {
    totals.add(client->subscription);
    now.push_back(seen(*client));
  }
  const auto show = [&](Counter counter, std::uint64_t value) { counters.add(counter, value - counters.read(counter)); };
  show(Counter::monitor_chunks_dropped, totals.dropped);
  show(Counter::chunks_published, totals.published);
  for (std::size_t i = 0; i < totals.flushes.size(); ++i)
    show(static_cast<Counter>(static_cast<std::size_t>(Counter::pages_full) + i), totals.flushes[i]);
  const std::scoped_lock lock(snapshot_lock);
  snapshot = std::move(now);
}

// ---- public functions

Result<void> refuse_open_address(const PublisherSettings& settings) {
  if (is_loopback(settings.address)) return {};
  if (settings.secret.empty())
    return std::unexpected(Error{"transport.no_secret",
                                 fmt::format("{} is reached from other hosts, and there is no secret", settings.address),
                                 {},
                                 "set secret_file, for both sides, or listen at 127.0.0.1"});
  if (is_wildcard(settings.address))
    return std::unexpected(Error{"transport.address",
                                 fmt::format("{} means all addresses of this host: peers need one", settings.address),
                                 {},
                                 "name the one by which others reach it; `ip address` shows them"});
  return {};
}

Publisher::Publisher(PublisherSettings settings, std::span<const Fid> links, bool trigger_list)
    : inside_(std::make_unique<Inside>(std::move(settings), links, trigger_list)) {}

Publisher::~Publisher() {
  for (const auto& client : inside_->clients) inside_->disconnect(*client);
}

bool Publisher::publish(std::span<const ChunkRun> runs) { return inside_->publish(runs); }
LinkTally Publisher::give_up(std::span<const ChunkRun> runs) { return inside_->give_up(runs); }
LinkTally Publisher::tally(std::size_t link) const { return inside_->link_counters[link].tally(); }

void Publisher::progress(std::uint64_t now_ns, std::uint64_t clock_ns) {
  Inside& in = *inside_;
  in.now_ns = now_ns;
  in.clock_ns = clock_ns;
  in.take_events();
  const bool look = now_ns - in.looked_ns >= kLookNs;
  bool gone = false;
  for (const auto& client : in.clients) {
    client->subscription.set_clock(clock_ns);
    // Also called when credit or slots run short, not only by the clock.
    const PageRing& ring = client->subscription.ring();
    const bool short_of = client->credit - client->sent < ring.slots() / 2 || ring.filled() > ring.slots() / 2;
    const bool old = in.flushes_between_looks && in.is_old(*client, now_ns);
    if (look || (client->state == Client::State::flowing && (short_of || old))) in.look_at(*client, now_ns);
    in.send(*client, now_ns);
    gone = gone || client->state == Client::State::gone;
  }
  if (gone || std::exchange(in.demand_is_old, false)) in.retarget();
  if (gone) in.take_snapshot();
  if (!look) return;
  in.looked_ns = now_ns;
  const auto admit = [&](ControlSocket& guest, formats::ControlMessage said) -> Result<void> {
    auto* const wish = std::get_if<formats::ControlSubscribe>(&said);
    if (wish == nullptr)
      return std::unexpected(
          Error{"transport.protocol", fmt::format("publisher {} takes subscriptions only", in.settings.name)});
    return in.subscribe(guest, std::move(*wish), now_ns);
  };
  in.reception->greet(now_ns, admit).count(in.counters);
  if (now_ns - in.snapshot_ns >= kSnapshotNs || in.ending) {
    in.snapshot_ns = now_ns;
    in.take_snapshot();
  }
}

bool Publisher::wanted(LinkIndex link) const { return inside_->demand[link] != Inside::Demand::none; }
std::uint64_t Publisher::wanted_changes() const { return inside_->demand_changes; }

bool Publisher::wanted_as_data(LinkIndex link) const { return inside_->demand[link] == Inside::Demand::data; }
void Publisher::skip(LinkIndex link, std::uint32_t chunks) { inside_->link_counters[link].skip(chunks); }

bool Publisher::all_links_subscribed() const {
  return std::ranges::all_of(inside_->targets, [](const auto& of) {
    return std::ranges::any_of(of, [](const Inside::Target& one) {
      return one.client->state == Client::State::flowing && !one.client->subscription.wish().monitor;
    });
  });
}

void Publisher::end() { inside_->ending = true; }
bool Publisher::ended() const { return inside_->ending && inside_->clients.empty(); }

std::uint64_t Publisher::pages_taken() const {
  const auto taken_by = [](const Client& client) {
    const PageRing& ring = client.subscription.ring();
    return ring.closed() - ring.filled();
  };
  if (const Client* const slow = inside_->waits_for()) return taken_by(*slow);
  std::uint64_t sum = 0;
  for (const auto& client : inside_->clients) sum += taken_by(*client);
  return sum;
}

std::vector<NamedCounter> Publisher::counters() const {
  return base::named_counters(inside_->counters, kPublisherCounters, [](Counter) { return true; });
}

std::vector<Publisher::Subscriber> Publisher::subscribers() const {
  const std::scoped_lock lock(inside_->snapshot_lock);
  return inside_->snapshot;
}

}  // namespace rodeo::transport
