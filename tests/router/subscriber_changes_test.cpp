// Log lines for subscribers that come and go.
#include "router/subscriber_changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "router/some_status.h"

namespace rodeo::router {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(SubscriberChanges, NothingIsSaidWhereNothingChanged) {
  EXPECT_THAT(subscriber_changes(some_status(), some_status()), IsEmpty());
}

TEST(SubscriberChanges, WhoComesIsNamedWithWhatHeTakes) {
  EXPECT_THAT(subscriber_changes({}, some_status()),
              ElementsAre("felix.0: readout (data) at 127.0.0.1:4711, tcp takes 59 links",
                          "felix.0: look (monitor) at 127.0.0.1:4712, shm takes 1 link"));
}

TEST(SubscriberChanges, WhoGoesIsNamedWhetherHeIsStillListedOrNot) {
  RouterStatus now = some_status();
  now.readers[0].subscribers[0].connected = false;
  now.readers[0].subscribers.pop_back();
  EXPECT_THAT(subscriber_changes(some_status(), now), ElementsAre("felix.0: readout (data) at 127.0.0.1:4711, tcp is gone",
                                                                  "felix.0: look (monitor) at 127.0.0.1:4712, shm is gone"));
}

TEST(SubscriberChanges, WhoComesBackFromAnotherPortIsSaidToHaveGoneAndCome) {
  RouterStatus now = some_status();
  now.readers[0].subscribers[0].peer = "127.0.0.1:5000";
  EXPECT_EQ(subscriber_changes(some_status(), now).size(), 2U);
}

}  // namespace
}  // namespace rodeo::router
