#include <gmock/gmock.h>

#include "network/laboratory/hosts.h"
#include "network/laboratory/linux_switch.h"
#include "network/laboratory/message.h"
#include "network/laboratory/traffic_line.h"

namespace rodeo::network::laboratory {
namespace {

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

TEST(AgentLine, ComesBackAsItWas) {
  const Line line = Line::parse(Line("run").set("rate_hz", 0.1).set("n", std::uint64_t{1} << 62).set("tcp", "cubic").str());
  EXPECT_EQ(line.verb(), "run");
  EXPECT_EQ(line.number("rate_hz").value(), 0.1);
  EXPECT_EQ(line.integer("n").value(), std::int64_t{1} << 62);
  EXPECT_EQ(line.text("tcp"), "cubic");
}

TEST(AgentLine, NonsenseIsAnErrorWhereItIsUsed) {
  for (const char* text : {"", " ", "=", "a=1", "run rate_hz", "run rate_hz=", "run rate_hz=1x", "run rate_hz=1e9 n",
                           "run =1 ==", "run n=99999999999999999999"}) {
    const Line line = Line::parse(text);
    EXPECT_FALSE(line.integer("n")) << text;
  }
  EXPECT_FALSE(Line::parse("run rate_hz=1x").number("rate_hz"));
}

TEST(RunOrder, ComesBackAsItWas) {
  RunOrder order;
  order.settings.topology.readouts = 8;
  order.settings.topology.nodes = 16;
  order.settings.traffic.event_rate_hz = 119.7;
  order.settings.traffic.arrivals = Arrivals::poisson;
  order.settings.traffic.size_spread = SizeSpread::log_normal;
  order.settings.traffic.size_sigma = 0.3;
  order.node = 5;
  order.start_ns = 123456789012345;
  order.drain_seconds = 1.4;
  const auto back = run_order_of(Line::parse(line_of(order).str()));
  ASSERT_TRUE(back) << back.error().what;
  EXPECT_EQ(line_of(*back).str(), line_of(order).str());
}

TEST(RunOrder, ThatWouldNeverEndIsRefused) {
  const std::string good = line_of({}).str();
  ASSERT_TRUE(run_order_of(Line::parse(good)));
  for (const char* bad :
       {" rate_hz=1e15", " rate_hz=nan", " rate_hz=inf", " rate_hz=-1", " seconds=1e9", " nodes=0", " readouts=0",
        " event_bytes=0", " arrivals=9", " assignment=2", " in_flight=0", " seed=-1", " node=x"}) {
    EXPECT_FALSE(run_order_of(Line::parse(good + bad))) << bad;
  }
  EXPECT_FALSE(run_order_of(Line::parse("run")));
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
