#include <gmock/gmock.h>

#include <cmath>

#include "process/http_client.h"
#include "process/http_server.h"
#include "process/prometheus_query.h"

namespace rodeo::process {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

TEST(PrometheusAnswer, HasSeriesWithLabelsAndSamples) {
  // The example of the API's documentation, shortened.
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
