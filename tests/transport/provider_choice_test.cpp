#include "transport/provider_choice.h"

#include <gtest/gtest.h>

namespace rodeo::transport {
namespace {

using Choice = std::vector<std::string>;

BusEntry publisher() { return {.name = "felix0.0", .host = "felix0", .pid = 100, .providers = {"verbs", "tcp", "shm"}}; }

Here subscriber() { return {.host = "readout0", .pid = 200, .rdma = true}; }

TEST(ProviderChoice, BetweenHostsIsRdmaWhereBothHaveIt) {
  EXPECT_EQ(provider_choice("auto", publisher(), subscriber()), (Choice{"verbs", "tcp"}));
  Here without = subscriber();
  without.rdma = false;
  EXPECT_EQ(provider_choice("auto", publisher(), without), Choice{"tcp"});
}

TEST(ProviderChoice, SharedMemoryIsTakenByItsNameOnly) {
  Here here = subscriber();
  here.host = "felix0";
  here.rdma = false;
  EXPECT_EQ(provider_choice("auto", publisher(), here), Choice{"tcp"});
  EXPECT_EQ(provider_choice("shm", publisher(), here), Choice{"shm"});
}

TEST(ProviderChoice, OneByNameIsTaken) { EXPECT_EQ(provider_choice("shm", publisher(), subscriber()), Choice{"shm"}); }

TEST(ProviderChoice, OfWhatIsNotOfferedThereIsNone) {
  BusEntry only = publisher();
  only.providers = {"shm"};
  EXPECT_EQ(provider_choice("auto", only, subscriber()), Choice{});
}

TEST(ProviderChoice, RdmaIsOfferedWhereThereIsADevice) {
  Here here = subscriber();
  EXPECT_EQ(offered_providers(here), (Choice{"verbs", "tcp"}));
  here.rdma = false;
  EXPECT_EQ(offered_providers(here), Choice{"tcp"});
}

}  // namespace
}  // namespace rodeo::transport
