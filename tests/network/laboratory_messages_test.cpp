#include <gmock/gmock.h>

#include "network/laboratory/hosts.h"
#include "network/laboratory/linux_switch.h"
#include "network/laboratory/message.h"
#include "network/laboratory/run_order.h"

namespace rodeo::network::laboratory {
namespace {

using settings::Json;

TEST(LaboratoryMessage, ComesBackAsItWas) {
  const auto bytes = encode(kRequestMagic, {.event = 77, .bytes = 62'500});
  const auto message = decode(kRequestMagic, bytes);
  ASSERT_TRUE(message);
  EXPECT_EQ(message->event, 77u);
  EXPECT_EQ(message->bytes, 62'500u);
}

TEST(LaboratoryMessage, OfAnotherKindOrForTooMuchIsNone) {
  EXPECT_FALSE(decode(kReplyMagic, encode(kRequestMagic, {.event = 1, .bytes = 1})));
  EXPECT_FALSE(decode(kRequestMagic, encode(kRequestMagic, {.event = 1, .bytes = kLargestFragmentBytes + 1})));
  auto bytes = encode(kRequestMagic, {.event = 1, .bytes = 1});
  bytes[5] = std::byte{1};
  EXPECT_FALSE(decode(kRequestMagic, bytes));
}

RunOrder order() {
  RunOrder order;
  order.scenario.topology.readouts = 8;
  order.scenario.topology.nodes = 16;
  order.scenario.traffic.event_rate_hz = 119.7;
  order.scenario.traffic.arrivals = Arrivals::poisson;
  order.scenario.traffic.size_spread = SizeSpread::log_normal;
  order.scenario.traffic.size_sigma = 0.3;
  order.scenario.duration_ns = 3'000'000'001;
  order.node = 5;
  order.start_ns = 123'456'789'012'345;
  order.drain_ns = 1'400'000'001;
  return order;
}

TEST(RunOrder, ComesBackAsItWas) {
  const std::string line = json_of(order()).dump(0);
  const auto back = run_order_of(Json::parse(line).value());
  ASSERT_TRUE(back) << back.error().what;
  EXPECT_EQ(json_of(*back).dump(0), line);
}

TEST(RunOrder, ThatWouldNeverEndIsRefused) {
  const Json good = json_of(order());
  ASSERT_TRUE(run_order_of(good));
  for (const auto& [name, value] : {std::pair{"rate", "1e15"},
                                    {"rate", "nan"},
                                    {"rate", "inf"},
                                    {"rate", "-1"},
                                    {"duration", "1e9"},
                                    {"nodes", "0"},
                                    {"readouts", "0"},
                                    {"event_size", "0"},
                                    {"arrivals", "9"},
                                    {"events_in_flight", "0"},
                                    {"seed", "-1"},
                                    {"x", "1"}}) {
    Json bad = good;
    bad["settings"][name] = value;
    EXPECT_FALSE(run_order_of(bad)) << name << value;
  }
  for (const auto& [name, value] :
       {std::pair{"node", Json(16)}, {"start_ns", Json(std::uint64_t{1} << 63)}, {"settings", Json("no")}}) {
    Json bad = good;
    bad[name] = value;
    if (std::string_view(name) == "settings") bad["node"] = 32;
    EXPECT_FALSE(run_order_of(bad)) << name;
  }
}

TEST(RunOrder, ThatDoesNotSayWhichNodeOrWhenIsRefused) {
  const Json good = json_of(order());
  for (const char* name : {"node", "start_ns", "drain_ns"}) {
    for (const Json& value : {Json(), Json("1"), Json(true), Json(-1), Json(1.5), Json::array()}) {
      Json bad = good;
      bad[name] = value;
      const auto refused = run_order_of(bad);
      ASSERT_FALSE(refused) << name << " " << value.dump(0);
      EXPECT_NE(refused.error().what.find(name), std::string::npos) << refused.error().what;
    }
  }
}

TEST(HostList, HasRolesAddressesAndCommands) {
  const auto hosts = parse_hosts("# comment\nreadout 10.0.0.1 ssh -p 22 ro1  # one\n\nnode 10.0.1.1\n", "hosts.txt");
  ASSERT_TRUE(hosts) << hosts.error().what;
  ASSERT_EQ(hosts->size(), 2u);
  EXPECT_TRUE((*hosts)[0].is_readout);
  EXPECT_THAT((*hosts)[0].command, testing::ElementsAre("ssh", "-p", "22", "ro1"));
  EXPECT_THAT((*hosts)[1].command, testing::ElementsAre("ssh", "10.0.1.1"));
}

TEST(HostList, ErrorsNameTheLine) {
  EXPECT_EQ(parse_hosts("readout 10.0.0.1\nfilter 10.0.0.2", "h").error().where, "h:2");
  EXPECT_EQ(parse_hosts("readout ten", "h").error().where, "h:1");
  EXPECT_EQ(parse_hosts("readout", "h").error().where, "h:1");
  EXPECT_EQ(parse_hosts("readout 10.0.0.1\n", "h").error().where, "h");
  EXPECT_EQ(parse_hosts("", "h").error().code, "network.hosts");
  EXPECT_EQ(read_hosts("/nowhere/hosts").error().code, "network.hosts");
}

TEST(LinuxSwitch, ReadsTheDropsOfTheFirstQueue) {
  EXPECT_EQ(
      drops_in("qdisc tbf 8001: root refcnt 2 rate 50Mbit\n Sent 10 bytes 1 pkt (dropped 17, overlimits 3 requeues 0)\n")
          .value(),
      17u);
  EXPECT_FALSE(drops_in(""));
  EXPECT_FALSE(drops_in("(dropped many"));
}

TEST(LinuxSwitch, HasNoSharedBuffer) {
  SwitchBuffer shared;
  shared.shared_bytes = 1'000'000;
  EXPECT_EQ(linux_switch({.command = {}, .ports = {"lo"}})->set_buffer(shared).error().code, "network.unsupported");
}

}  // namespace
}  // namespace rodeo::network::laboratory
