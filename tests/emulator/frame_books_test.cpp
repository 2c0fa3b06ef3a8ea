// Counts of heartbeat frames: each counts once. It is sent if a readable page of it is in a returned superpage.
#include "emulator/frame_books.h"

#include <gtest/gtest.h>

namespace rodeo::emulator {
namespace {

/// A frame of this number of pages, or the rest of a frame.
void frame(FrameBooks& books, int pages, bool begins = true, bool ends = true) {
  if (begins) books.begins();
  for (int page = 1; page <= pages; ++page) books.page(true, ends && page == pages);
}

TEST(FrameBooks, FramesAreLostWithTheirSuperpage) {
  FrameBooks books;
  frame(books, 2);
  frame(books, 2);
  books.superpage_ends(true, 100);
  frame(books, 3);
  books.superpage_ends(false, 70);
  EXPECT_EQ(books.sent(), 2U);
  EXPECT_EQ(books.lost(), 1U);
  EXPECT_EQ(books.pages_lost(), 3U);
  EXPECT_EQ(books.bytes_lost(), 70U);
}

TEST(FrameBooks, AFrameOverSuperpagesIsSentOnceIfOneOfThemIsGivenBack) {
  for (const bool first : {true, false}) {
    for (const bool second : {true, false}) {
      FrameBooks books;
      frame(books, 1, true, false);
      books.superpage_ends(first, 10);
      frame(books, 1, false, true);
      frame(books, 1);
      books.superpage_ends(second, 10);
      EXPECT_EQ(books.sent(), (first || second ? 1U : 0U) + (second ? 1U : 0U));
      EXPECT_EQ(books.sent() + books.lost(), 2U);
    }
  }
}

TEST(FrameBooks, WhatFollowsAnUnreadablePageInASuperpageIsCorrupted) {
  FrameBooks books;
  frame(books, 1, true, false);
  books.page(false, true);  // the first page is readable
  frame(books, 2);
  frame(books, 1, true, false);
  books.superpage_ends(true, 10);
  frame(books, 1, false, true);  // this page also has the end of the last frame
  books.superpage_ends(true, 10);
  EXPECT_EQ(books.sent(), 2U);
  EXPECT_EQ(books.corrupted(), 1U);
}

TEST(FrameBooks, WhatIsUnderWayAtTheEndIsCutOffUnlessItWasSent) {
  FrameBooks books;
  frame(books, 2);
  frame(books, 1, true, false);
  books.cut_off();
  EXPECT_EQ(books.cut_off_frames(), 2U);
  frame(books, 1, true, false);
  books.superpage_ends(true, 10);
  books.cut_off();
  EXPECT_EQ(books.cut_off_frames(), 2U);
  EXPECT_EQ(books.sent(), 1U);
}

}  // namespace
}  // namespace rodeo::emulator
