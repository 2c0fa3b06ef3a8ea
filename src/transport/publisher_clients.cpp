// The life of a subscription in a Publisher: from the request to the end.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/log.h"
#include "transport/provider_choice.h"
#include "transport/publisher_inside.h"
#include "transport/random.h"

namespace rodeo::transport {
namespace {

constexpr std::size_t kMostDeparted = 16;
constexpr std::string_view kFabricIsGone = "the fabric's connection is gone";

}  // namespace

Publisher::Inside::Inside(PublisherSettings of, std::span<const Fid> all, bool trigger_list)
    : settings(std::move(of)),
      links(all.begin(), all.end()),
      listener({.name = settings.name, .address = settings.address, .secret = settings.secret}),
      targets(all.size()),
      link_counters(all.size()),
      begun(all.size()),
      demand(all.size()) {
  for (std::size_t i = 0; i < links.size(); ++i) index[links[i]] = static_cast<LinkIndex>(i);
  listener.advertise(settings.bus,
                     {.providers = settings.providers.empty() ? offered_providers(Here::detect()) : settings.providers,
                      .page_bytes = settings.page_bytes,
                      .max_chunk_bytes = settings.max_chunk_bytes,
                      .trigger_list = trigger_list,
                      .links = links});
}

// ---- requests of new peers

Result<void> Publisher::Inside::on_subscribe(ControlSocket& socket, formats::ControlSubscribe wish) {
  const auto known = std::ranges::find_if(clients, [&](const auto& client) {
    return client->state != State::gone && client->subscription.wish().session == wish.session;
  });
  const bool resumed = known != clients.end();
  if (resumed) RODEO_TRY(resume(**known, std::move(wish)));
  Client& client = resumed ? **known : *RODEO_TRY(begin(std::move(wish)));
  client.socket = std::move(socket);
  client.peer = client.socket.peer();
  auto connected = connect(client, resumed);
  if (!connected) {
    socket = std::move(client.socket);
    // A subscriber that came back may try again with another network. Its data stay.
    end(client, resumed ? State::held : State::gone);
  }
  retarget();
  return connected;
}

Result<void> Publisher::Inside::resume(Client& client, formats::ControlSubscribe wish) {
  if (client.subscription.wish().links != wish.links || client.subscription.wish().monitor != wish.monitor)
    return std::unexpected(Error{"transport.session", "this session has other links"});
  if (!client.subscription.ring().taken(wish.taken))
    return std::unexpected(Error{"transport.protocol", "this session was sent fewer pages"});
  end(client, State::held);
  client.subscription.resume(std::move(wish));
  return {};
}

Result<Client*> Publisher::Inside::begin(formats::ControlSubscribe wish) {
  if (clients.size() >= settings.most_subscribers)
    return std::unexpected(Error{"transport.too_many", fmt::format("publisher {} has {} subscribers, and takes no more",
                                                                   settings.name, clients.size())});
  std::vector<LinkIndex> positions;
  for (const Fid fid : wish.links) {
    const auto found = index.find(fid);
    if (found == index.end())
      return std::unexpected(
          Error{"transport.unknown_link", fmt::format("publisher {} has no link {:#018x}", settings.name, fid.value)});
    positions.push_back(found->second);
  }
  const std::uint32_t pages = std::clamp<std::uint32_t>(wish.pages, 2, settings.pages);
  auto memory = RODEO_TRY(base::Arena::create(std::size_t{pages} * settings.page_bytes));
  const std::span bytes(memory.data(), memory.size());
  std::vector<std::uint32_t> numbers;
  for (const LinkCounters& link : link_counters) numbers.push_back(link.number());
  std::vector<std::uint8_t> in_chunk = begun;
  if (in_hand) {  // the subscription begins after the run that is in hand
    numbers[in_hand->link] += in_hand->more_follows ? 0 : in_hand->count;
    in_chunk[in_hand->link] = in_hand->more_follows;
  }
  if (!wish.monitor) on_restart(wish);
  clients.push_back(std::make_unique<Client>(
      std::move(memory),
      Subscription(std::move(wish), std::move(positions), bytes, settings.page_bytes, numbers, in_chunk, clock_ns)));
  clients.back()->had_run = run_number;
  return clients.back().get();
}

// A restarted process has another session and does not ask for the data held for the old session. Releases these data.
void Publisher::Inside::on_restart(const formats::ControlSubscribe& wish) {
  for (const auto& client : clients) {
    const formats::ControlSubscribe& before = client->subscription.wish();
    const bool away = client->state == State::held || client->state == State::cut;
    if (!away || before.monitor || before.name != wish.name || before.links != wish.links) continue;
    base::log_warning("publisher {}: subscriber {} was restarted: {} chunks that were held for it are undelivered",
                      settings.name, wish.name, client->subscription.untaken_chunks());
    end(*client, State::gone);
  }
}

Result<void> Publisher::Inside::connect(Client& client, bool resumed) {
  const formats::ControlSubscribe& wish = client.subscription.wish();
  FabricPort* const port = RODEO_TRY(listener.port_of(wish.provider));
  client.connection = RODEO_TRY(port->open({client.memory.data(), client.memory.size()}, settings.page_bytes));
  // From here on, end() closes the connection.
  client.port = port;
  connections.put(*port, client.connection, &client);
  formats::ControlAccept accept{.resumed = resumed,
                                .token = random_bytes<16>(),
                                .address = port->listens_at(),
                                .page_bytes = settings.page_bytes,
                                .pages = client.subscription.ring().slots()};
  RODEO_TRY(port->accept(client.connection, accept.token, wish.address));
  client.state = State::connecting;
  client.connecting_since_ns = now_ns;
  client.credit = client.sent = client.under_way = 0;
  client.leaves = false;
  client.last_page_ns = now_ns;
  client.socket.say(accept);
  return {};
}

// ---- events and messages of subscribers

void Publisher::Inside::on_event(Client& client, const FabricPort::Event& event) {
  switch (event.what) {
    case FabricPort::Event::What::connected:
      if (client.state != State::connecting) break;
      client.state = State::flowing;
      client.flowed = true;
      client.away_since_ns = 0;
      break;
    case FabricPort::Event::What::sent:
      client.subscription.ring().sent(event.slot);
      --client.under_way;
      break;
    case FabricPort::Event::What::broken: on_fabric_broken(client); break;
    case FabricPort::Event::What::received: break;
  }
}

void Publisher::Inside::read(Client& client) {
  const auto all = client.socket.read([&](const formats::ControlMessage& message) { return on_message(client, message); });
  if (all) return;
  if (all.error().code != "transport.closed") Refusals::from_code(all.error().code).count(counters);
  on_broken(client, all.error().what);
}

Result<void> Publisher::Inside::on_message(Client& client, const formats::ControlMessage& message) {
  if (const auto* const credit = std::get_if<formats::ControlCredit>(&message);
      credit != nullptr && client.subscription.ring().taken(credit->taken)) {
    client.credit = std::max(client.credit, credit->pages);
    return {};
  }
  if (!std::holds_alternative<formats::ControlLeave>(message))
    return std::unexpected(Error{"transport.protocol", "it sent a message that is not allowed here"});
  // The subscriber still gets the chunks in pages, but no new ones.
  client.leaves = true;
  client.subscription.leave();
  demand_is_old = true;
  return {};
}

// Ends waits that take too long.
void Publisher::Inside::on_time(Client& client) {
  // The time counts from the first look, because now_ns may have been old when the connection ended. A client that
  // reconnects but gets no data counts as away all the time.
  const bool away = client.state == State::held || client.state == State::cut || client.state == State::connecting;
  if (!away) return;
  if (client.away_since_ns == 0) client.away_since_ns = now_ns;
  const bool over = now_ns - client.away_since_ns >= static_cast<std::uint64_t>(settings.grace.count());
  if (client.state == State::connecting) {
    if (now_ns - client.connecting_since_ns > kGreetingNs) on_broken(client, "the fabric's connection was not made in time");
  } else if (over && client.state == State::cut) {  // the subscriber sent nothing more and did not close
    end(client, State::held);
  } else if (over) {
    base::log_warning("publisher {}: subscriber {} {}; its subscription ends", settings.name,
                      client.subscription.wish().name, client.flowed ? "has not come back" : "did not connect");
    end(client, State::gone);
  }
}

// ---- the end of a connection

// The control connection may be slower than the fabric, and may still carry acknowledgements. So this ends our direction
// only; the subscriber then closes the connection.
void Publisher::Inside::on_fabric_broken(Client& client) {
  if (client.state == State::flowing) return end(client, State::cut);
  on_broken(client, kFabricIsGone);
}

void Publisher::Inside::on_broken(Client& client, std::string_view why) {
  const bool flowed = client.state == State::cut || client.state == State::flowing;
  if (client.state == State::cut) why = kFabricIsGone;
  const bool over = client.state == State::leaving || client.leaves || client.subscription.wish().monitor;
  end(client, over ? State::gone : State::held);
  // There may be many attempts without data; these are not logged.
  if (!over && flowed) {
    base::log_warning("publisher {}: subscriber {} at {} is gone ({}); its data wait for {} s", settings.name,
                      client.subscription.wish().name, client.peer, why,
                      std::chrono::duration<double>(settings.grace).count());
  }
}

// Every connection ends here: the network releases its pages. `next`: `cut`, `held` or `gone`.
void Publisher::Inside::end(Client& client, State next) {
  if (client.port != nullptr) {
    connections.remove(*client.port, client.connection);
    client.port->close(client.connection);
  }
  client.port = nullptr;
  client.under_way = 0;
  client.subscription.ring().unsend();
  if (next == State::cut) {
    client.socket.end_output();
  } else {
    client.socket.close();
  }
  client.state = next;
}

// ---- all subscribers

// Removes clients that are gone, and rebuilds the list of subscribers of each link.
void Publisher::Inside::retarget() {
  std::erase_if(clients, [&](const auto& client) {
    if (client->state != State::gone) return false;
    const Subscription& of = client->subscription;
    if (in_hand) in_pages = std::max(in_pages, client->place.chunk);
    gone_totals.add(of);
    if (of.wish().monitor) {
      gone_totals.dropped += of.untaken_chunks();
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
          .connected = client.state == State::flowing || client.state == State::leaving,
          .gone = client.state == State::gone,
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
  Totals totals = gone_totals;
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

}  // namespace rodeo::transport
