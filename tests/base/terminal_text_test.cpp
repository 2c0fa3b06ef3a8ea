#include "base/terminal_text.h"

#include <gtest/gtest.h>

using namespace rodeo::base;

TEST(Folded, BreaksLongLinesAtBlanks) {
  EXPECT_EQ(folded("one two three four\n", 10), "one two\n  three\n  four\n");
  EXPECT_EQ(folded("short\nlines\n", 10), "short\nlines\n");
}

TEST(Folded, ContinuesBelowTheTextBehindALabel) {
  EXPECT_EQ(folded("  sum    one two three", 18), "  sum    one two\n         three");
}

TEST(Folded, KeepsWordsThatAreTooLongWhole) {
  EXPECT_EQ(folded("file /a/very/long/path in it", 10), "file\n  /a/very/long/path\n  in it");
}

TEST(Folded, CountsNoColoursAndCharactersInsteadOfBytes) {
  EXPECT_EQ(shown_width("\x1b[31m5 µs\x1b[0m"), 4U);
  EXPECT_EQ(folded("\x1b[31mone two\x1b[0m x", 9), "\x1b[31mone two\x1b[0m x");
}

TEST(Folded, ChangesNothingWithoutATerminal) { EXPECT_EQ(folded("one two three four", 0), "one two three four"); }
