#include <gmock/gmock.h>

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmath>

#include "base/fd_socket.h"
#include "process/http_client.h"
#include "process/http_server.h"
#include "process/prometheus.h"
#include "process/prometheus_query.h"

namespace rodeo::process {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Pair;

TEST(PrometheusAnswer, HasSeriesWithLabelsAndSamples) {
  // A shortened example of the API's documentation.
  const auto series = parse_range_answer(
      R"({"status":"success","data":{"resultType":"matrix","result":[
          {"metric":{"__name__":"up","job":"prometheus"},"values":[[1435781430.781,"1"],[1435781445.781,"NaN"],[1435781460.781,"+Inf"]]}]}})");
  ASSERT_TRUE(series) << series.error().what;
  ASSERT_EQ(series->size(), 1u);
  EXPECT_THAT((*series)[0].labels, ElementsAre(Pair("__name__", "up"), Pair("job", "prometheus")));
  ASSERT_EQ((*series)[0].samples.size(), 3u);
  EXPECT_EQ((*series)[0].samples[0], (std::pair{1435781430.781, 1.0}));
  EXPECT_TRUE(std::isnan((*series)[0].samples[1].second));
}

TEST(PrometheusAnswer, ARefusalIsRepeated) {
  EXPECT_THAT(parse_range_answer(R"({"status":"error","errorType":"bad_data","error":"parse error"})").error().what,
              HasSubstr("parse error"));
}

TEST(PrometheusAnswer, NonsenseIsAnError) {
  for (const char* body : {"", "<html>", "[]", "{}", R"({"status":"success"})",
                           R"({"status":"success","data":{"resultType":"vector","result":[]}})",
                           R"({"status":"success","data":{"resultType":"matrix","result":[{}]}})",
                           R"({"status":"success","data":{"resultType":"matrix","result":[{"values":[[1]]}]}})",
                           R"({"status":"success","data":{"resultType":"matrix","result":[{"values":[[1,"x"]]}]}})"}) {
    const auto series = parse_range_answer(body);
    ASSERT_FALSE(series) << body;
    EXPECT_EQ(series.error().code, "process.prometheus");
  }
}

TEST(HttpClient, GetsWhatOurServerAnswers) {
  std::string asked;
  const HttpServer server("127.0.0.1:0", [&asked](const std::string& target) -> HttpReply {
    asked = target;
    return {.status = 404, .body = "no such thing"};
  });
  const auto answer =
      http_get("http://" + server.address() + "/a?query=" + percent_encoded("sum(a{b=\"c d\"})"), std::chrono::seconds(60));
  ASSERT_TRUE(answer) << answer.error().what;
  EXPECT_EQ(answer->status, 404u);
  EXPECT_EQ(answer->body, "no such thing");
  EXPECT_EQ(asked, "/a?query=sum%28a%7Bb%3D%22c%20d%22%7D%29");
}

/// The server's answer to one request, until it closes the connection.
std::string raw_answer(const std::string& address, const std::string& method) {
  const auto port = static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
  const base::UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)) != 0) return {};
  const std::string request = method + " /metrics?x=y HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n";
  if (::write(socket.get(), request.data(), request.size()) != static_cast<ssize_t>(request.size())) return {};
  std::string said;
  char part[4096];
  for (ssize_t n = 0; (n = ::read(socket.get(), part, sizeof(part))) > 0;) said.append(part, static_cast<std::size_t>(n));
  return said;
}

TEST(HttpServer, AnswersHeadAsGetWithoutTheBodyAndRefusesOtherMethods) {
  const HttpServer server("127.0.0.1:0", metrics_answer([] { return std::string("rodeo_up 1\n"); }));
  EXPECT_THAT(raw_answer(server.address(), "GET"), AllOf(HasSubstr("200 OK"), EndsWith("\r\n\r\nrodeo_up 1\n")));
  EXPECT_THAT(raw_answer(server.address(), "HEAD"),
              AllOf(HasSubstr("200 OK"), HasSubstr("Content-Length: 11"), EndsWith("\r\n\r\n")));
  EXPECT_THAT(raw_answer(server.address(), "POST"), AllOf(HasSubstr("405"), HasSubstr("Allow: GET, HEAD")));
}

TEST(HttpClient, WhatIsNoAddressIsRefused) {
  for (const char* url :
       {"", "monitor:9090", "https://monitor", "http://", "http://:1/", "http://127.0.0.1:x/", "http://127.0.0.1:9/"}) {
    const auto answer = http_get(url, std::chrono::seconds(60));
    ASSERT_FALSE(answer) << url;
    EXPECT_EQ(answer.error().code, "process.http_client");
  }
}

}  // namespace
}  // namespace rodeo::process
