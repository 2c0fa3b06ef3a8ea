#include "transport/handshake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/sha256.h"

namespace rodeo::transport {
namespace {

using namespace formats;
using Side = Handshake::Side;
using testing::HasSubstr;

using Bytes = std::vector<std::byte>;

std::vector<ControlMessage> messages_of(const Bytes& bytes) {
  std::vector<ControlMessage> messages;
  std::span<const std::byte> rest(bytes);
  while (!rest.empty()) {
    const auto taken = parse_control(rest);
    if (!taken || !*taken) throw std::runtime_error("no message");
    messages.push_back((*taken)->message);
    rest = rest.subspan((*taken)->bytes);
  }
  return messages;
}

ControlHello hello_of(std::string program, int nonce) {
  ControlHello hello{.instance = static_cast<std::uint64_t>(nonce), .program = std::move(program)};
  hello.nonce.fill(static_cast<std::byte>(nonce));
  return hello;
}

// The messages and results of one side.
struct Party {
  Party(Side side, std::string secret)
      : handshake(side, hello_of(side == Side::subscriber ? "reader" : "router", side == Side::subscriber ? 1 : 2),
                  std::move(secret)) {
    Bytes out;
    handshake.begin(out);
    said = messages_of(out);
  }

  void hear(const ControlMessage& message) {
    Bytes out;
    const auto taken = handshake.on_message(message, out);
    if (!taken && !error) error = taken.error();
    for (const ControlMessage& answer : messages_of(out)) said.push_back(answer);
  }

  std::string refused_with() const {
    const auto* refusal = std::get_if<ControlRefuse>(&said.back());
    return refusal == nullptr ? "" : refusal->code + ": " + refusal->what;
  }

  Handshake handshake;
  std::vector<ControlMessage> said;
  std::optional<Error> error;
};

// Passes messages between the sides until there are no more, or until one side ends the connection.
void talk(Party& one, Party& two) {
  std::size_t one_heard = 0;
  std::size_t two_heard = 0;
  while (one_heard < two.said.size() || two_heard < one.said.size()) {
    if (two_heard < one.said.size()) {
      const ControlMessage message = one.said[two_heard++];
      if (!two.error) two.hear(message);
    }
    if (one_heard < two.said.size()) {
      const ControlMessage message = two.said[one_heard++];
      if (!one.error) one.hear(message);
    }
  }
}

TEST(Handshake, WithoutASecretTwoHellosAreAll) {
  Party subscriber(Side::subscriber, "");
  Party publisher(Side::publisher, "");
  EXPECT_FALSE(subscriber.handshake.done());
  talk(subscriber, publisher);
  EXPECT_TRUE(subscriber.handshake.done());
  EXPECT_TRUE(publisher.handshake.done());
  EXPECT_EQ(subscriber.said.size(), 1U);
  EXPECT_EQ(publisher.said.size(), 1U);
  EXPECT_EQ(subscriber.handshake.peer().program, "router");
  EXPECT_EQ(publisher.handshake.peer().instance, 1U);
}

TEST(Handshake, WithASecretBothProve) {
  for (const bool publisher_first : {false, true}) {
    Party subscriber(Side::subscriber, "s3cret");
    Party publisher(Side::publisher, "s3cret");
    publisher_first ? talk(publisher, subscriber) : talk(subscriber, publisher);
    EXPECT_TRUE(subscriber.handshake.done());
    EXPECT_TRUE(publisher.handshake.done());
    ASSERT_EQ(subscriber.said.size(), 2U);
    EXPECT_TRUE(std::holds_alternative<ControlProof>(subscriber.said[1]));
    ASSERT_EQ(publisher.said.size(), 2U);
    EXPECT_TRUE(std::holds_alternative<ControlProof>(publisher.said[1]));
    EXPECT_NE(subscriber.said[1], publisher.said[1]);
  }
}

TEST(Handshake, AProofIsThatOfItsSpecification) {
  Party subscriber(Side::subscriber, "s3cret");
  Party publisher(Side::publisher, "s3cret");
  talk(subscriber, publisher);
  const auto proof = [](const std::string& text) {
    const std::string key = "s3cret";
    return ControlMessage(ControlProof{base::hmac_sha256(std::as_bytes(std::span(key)), std::as_bytes(std::span(text)))});
  };
  const std::string reader(32, '\1');
  const std::string router(32, '\2');
  EXPECT_EQ(subscriber.said[1], proof("rodeo subscriber" + reader + router));
  EXPECT_EQ(publisher.said[1], proof("rodeo publisher" + router + reader));
}

TEST(Handshake, ThePublisherProvesNothingToWhoHasNotProved) {
  Party publisher(Side::publisher, "s3cret");
  publisher.hear(hello_of("reader", 1));
  EXPECT_EQ(publisher.refused_with(), "transport.secret: the publisher requires a secret, and the subscriber has none");
  Party another(Side::publisher, "s3cret");
  ControlHello hello = hello_of("reader", 1);
  hello.secret_required = true;
  another.hear(hello);
  EXPECT_EQ(another.said.size(), 1U);
  EXPECT_FALSE(another.handshake.done());
}

TEST(Handshake, AnotherSecretIsRefused) {
  Party subscriber(Side::subscriber, "wrong");
  Party publisher(Side::publisher, "s3cret");
  talk(subscriber, publisher);
  EXPECT_FALSE(subscriber.handshake.done());
  EXPECT_FALSE(publisher.handshake.done());
  ASSERT_TRUE(publisher.error);
  EXPECT_EQ(publisher.error->code, "transport.secret");
  EXPECT_EQ(publisher.refused_with(), "transport.secret: the secrets of the subscriber and the publisher differ");
  ASSERT_TRUE(subscriber.error);
  EXPECT_EQ(subscriber.error->code, "transport.secret");
  EXPECT_THAT(subscriber.error->what, HasSubstr("the publisher refuses the subscriber: the secrets of the subscriber and"));
  for (const ControlMessage& message : publisher.said) EXPECT_FALSE(std::holds_alternative<ControlProof>(message));
}

TEST(Handshake, APublisherThatProvesWronglyIsRefused) {
  Party subscriber(Side::subscriber, "s3cret");
  ControlHello hello = hello_of("router", 2);
  hello.secret_required = true;
  subscriber.hear(hello);
  const ControlMessage own = subscriber.said.back();
  subscriber.hear(own);  // the subscriber gets its own message back
  ASSERT_TRUE(subscriber.error);
  EXPECT_EQ(subscriber.error->code, "transport.secret");
  EXPECT_FALSE(subscriber.handshake.done());
  EXPECT_THAT(subscriber.refused_with(), HasSubstr("the secrets of the publisher and the subscriber differ"));
}

TEST(Handshake, EveryBitOfAProofCounts) {
  Party subscriber(Side::subscriber, "s3cret");
  Party publisher(Side::publisher, "s3cret");
  publisher.hear(subscriber.said[0]);
  subscriber.hear(publisher.said[0]);
  const auto right = std::get<ControlProof>(subscriber.said[1]);
  for (std::size_t bit = 0; bit < 256; ++bit) {
    Party checks(Side::publisher, "s3cret");
    checks.hear(subscriber.said[0]);
    ControlProof wrong = right;
    wrong.mac[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    checks.hear(wrong);
    EXPECT_TRUE(checks.error && checks.error->code == "transport.secret") << bit;
  }
  publisher.hear(right);
  EXPECT_TRUE(publisher.handshake.done());
}

TEST(Handshake, WhoHasASecretRefusesWhoHasNone) {
  for (const bool subscribers : {false, true}) {
    Party subscriber(Side::subscriber, subscribers ? "s3cret" : "");
    Party publisher(Side::publisher, subscribers ? "" : "s3cret");
    talk(subscriber, publisher);
    for (const Party* party : {&subscriber, &publisher}) {
      EXPECT_FALSE(party->handshake.done());
      ASSERT_TRUE(party->error);
      EXPECT_EQ(party->error->code, "transport.secret");
      EXPECT_THAT(party->error->what,
                  HasSubstr(subscribers ? "the subscriber requires a secret, and the publisher has none"
                                        : "the publisher requires a secret, and the subscriber has none"));
    }
  }
}

TEST(Handshake, AnotherVersionIsRefusedByName) {
  Party publisher(Side::publisher, "s3cret");
  publisher.hear(ControlHello{.version = 4});
  ASSERT_TRUE(publisher.error);
  EXPECT_EQ(publisher.error->code, "transport.version");
  EXPECT_EQ(publisher.error->what,
            "the subscriber speaks version 4 of the control protocol, the publisher version 3: update the publisher");
  EXPECT_EQ(publisher.refused_with(), "transport.version: " + publisher.error->what);

  Party subscriber(Side::subscriber, "");
  subscriber.hear(ControlHello{.version = 0});
  ASSERT_TRUE(subscriber.error);
  EXPECT_THAT(subscriber.error->what,
              HasSubstr("speaks version 0 of the control protocol, the subscriber version 3: update the publisher"));

  Party pages(Side::subscriber, "");
  pages.hear(ControlHello{.page_version = 2});
  ASSERT_TRUE(pages.error);
  EXPECT_EQ(pages.error->code, "transport.version");
  EXPECT_THAT(pages.error->what, HasSubstr("version 2 of the network pages"));
}

TEST(Handshake, ARefusalIsPassedOnAndNotAnswered) {
  for (const auto& [code, ours] :
       {std::pair{"transport.version", "transport.version"}, std::pair{"transport.secret", "transport.secret"},
        std::pair{"nobody.knows", "transport.protocol"}}) {
    Party subscriber(Side::subscriber, "");
    subscriber.hear(ControlRefuse{code, "because"});
    ASSERT_TRUE(subscriber.error);
    EXPECT_EQ(subscriber.error->code, ours);
    EXPECT_EQ(subscriber.error->what, "the publisher refuses the subscriber: because");
    EXPECT_EQ(subscriber.said.size(), 1U);
    subscriber.hear(hello_of("router", 2));  // too late
    EXPECT_FALSE(subscriber.handshake.done());
    EXPECT_EQ(subscriber.said.size(), 1U);
  }
}

TEST(Handshake, WhatIsOutOfTurnIsRefused) {
  const auto refuses = [](Party& party, const ControlMessage& message) {
    party.hear(message);
    EXPECT_TRUE(party.error && party.error->code == "transport.protocol") << message.index();
    EXPECT_THAT(party.refused_with(), HasSubstr("transport.protocol"));
    EXPECT_FALSE(party.handshake.done());
  };
  for (const ControlMessage& message :
       std::vector<ControlMessage>{ControlProof{}, ControlSubscribe{}, ControlAccept{}, ControlCredit{}, ControlEnd{},
                                   ControlLeave{}, ControlClaim{}, ControlSend{}}) {
    Party first(Side::publisher, "");
    refuses(first, message);
  }
  ControlHello secret = hello_of("reader", 1);
  secret.secret_required = true;
  for (const ControlMessage& message : std::vector<ControlMessage>{secret, ControlSubscribe{}}) {
    Party waits_for_proof(Side::publisher, "s3cret");
    waits_for_proof.hear(secret);
    refuses(waits_for_proof, message);
  }
  Party done(Side::publisher, "");
  done.hear(hello_of("reader", 1));
  EXPECT_TRUE(done.handshake.done());
  refuses(done, hello_of("reader", 1));
}

}  // namespace
}  // namespace rodeo::transport
