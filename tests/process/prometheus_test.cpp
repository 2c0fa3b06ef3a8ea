#include "process/prometheus.h"

#include <gtest/gtest.h>

namespace rodeo::process {
namespace {

TEST(PrometheusText, WritesSamplesUnderTheirMetric) {
  PrometheusText out(Labels{{"readout", "test"}});
  out.metric("rodeo_up", "gauge", "Whether.");
  out.sample(1);
  out.sample(0.5, {{"link", "a \"b\" \\\n"}});
  EXPECT_EQ(out.take(),
            "# HELP rodeo_up Whether.\n# TYPE rodeo_up gauge\n"
            "rodeo_up{readout=\"test\"} 1\n"
            "rodeo_up{readout=\"test\",link=\"a \\\"b\\\" \\\\\\n\"} 0.5\n");
}

TEST(PrometheusText, ASampleWithoutLabelsIsBare) {
  PrometheusText out;
  out.metric("a", "counter", "B.");
  out.sample(std::uint64_t{7});
  EXPECT_EQ(out.take(), "# HELP a B.\n# TYPE a counter\na 7\n");
}

TEST(PrometheusText, IsServedUnderOnePath) {
  const auto answer = metrics_answer([] { return std::string("text"); });
  EXPECT_EQ(answer("/metrics").body, "text");
  EXPECT_EQ(answer("/metrics?x=y").body, "text");
  EXPECT_EQ(answer("/metricsx").status, 404U);
  EXPECT_EQ(answer("/metrics").status, 200U);
  EXPECT_EQ(answer("/").status, 404U);
}

}  // namespace
}  // namespace rodeo::process
