// Which calls count, on a machine that is played: its neighbour comes and goes on a clock of the test's own.
#include "measure_server/runner/calm_gate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "measure_server/runner/pulse.h"

namespace tuner {
namespace {

constexpr double kCalmPulse = 1600;

// At the clock at which even_ns is meant.
Pulse pulse(double ns) { return {.ns = ns, .even_ns = ns}; }

// In every `period_ns` the neighbour is there for `busy_ns`, in which everything takes twice as long.
struct Machine {
  double call_ns = 10e3;
  double period_ns = 3e6, busy_ns = 0;
  double now_ns = 0;
  int calls = 0;

  // Does work that takes so long alone; returns how long it took.
  double work(double ns) {
    const double begin = now_ns;
    constexpr double kStep = 100;
    for (double left = ns; left > 0; left -= kStep)
      now_ns += std::min(left, kStep) * (std::fmod(now_ns, period_ns) < busy_ns ? 2 : 1);
    return now_ns - begin;
  }
  CalmGate gate(double calm_ns = kCalmPulse) {
    return CalmGate(calm_ns, [this] { return pulse(work(kCalmPulse)); });
  }
  TakeSample kernel() {
    return [this](int64_t n, Sample& s) {
      calls += static_cast<int>(n);
      s.run_ns = s.cpu_ns = work(static_cast<double>(n) * call_ns);
      return true;
    };
  }
};

TEST(CalmGate, WithNobodyThereEveryCallCounts) {
  Machine machine;
  CalmGate gate = machine.gate();
  Sample s;
  ASSERT_TRUE(gate.take(100, machine.kernel(), s));
  EXPECT_EQ(machine.calls, 100);
  EXPECT_NEAR(s.run_ns, 100 * 10e3, 1);
  EXPECT_NEAR(s.cpu_ns, 100 * 10e3, 1);
  EXPECT_NEAR(s.pulse_ns, kCalmPulse, 1);
  EXPECT_TRUE(s.calm);
  EXPECT_EQ(gate.retaken(), 0);
  EXPECT_NEAR(gate.low_ns(), kCalmPulse, 1);
}

TEST(CalmGate, CallsBesideANeighbourAreTakenAnewSoTheTimeIsTheKernelsOwn) {
  Machine machine{.busy_ns = 1.5e6};
  CalmGate gate = machine.gate();
  gate.be_patient(50e6);
  for (int i = 0; i < 20; ++i) {
    Sample s;
    ASSERT_TRUE(gate.take(100, machine.kernel(), s));
    EXPECT_TRUE(s.calm);
    // A slice of 0.1 ms can hold him only at its edges, where the pulse saw nothing of him.
    EXPECT_NEAR(s.run_ns, 100 * 10e3, 0.01 * 100 * 10e3);
  }
  EXPECT_GT(gate.retaken(), 20);
}

TEST(CalmGate, WithoutALevelTheFastPulsesTell) {
  Machine machine{.busy_ns = 1.5e6};
  CalmGate gate = machine.gate(/*calm_ns=*/0);
  gate.be_patient(50e6);
  Sample s;
  ASSERT_TRUE(gate.take(500, machine.kernel(), s));  // begins beside him: who he is is found out
  ASSERT_TRUE(gate.take(100, machine.kernel(), s));
  EXPECT_TRUE(s.calm);
  EXPECT_NEAR(s.run_ns, 100 * 10e3, 0.01 * 100 * 10e3);
}

TEST(CalmGate, WhoScattersPulsesIsNoClock) {
  // Somebody who waits for memory on the other hardware thread: in bursts of a microsecond he adds up to a
  // third, less than a clock may.
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> uniform;
  int calls = 0;
  CalmGate gate(kCalmPulse, [&] { return pulse(kCalmPulse * (1 + 0.33 * uniform(random))); });
  gate.be_patient(5e6);
  Sample s;
  ASSERT_TRUE(gate.take(
      100,
      [&](int64_t n, Sample& slice) {
        calls += static_cast<int>(n);
        slice.run_ns = static_cast<double>(n) * 12e3;
        return true;
      },
      s));
  EXPECT_FALSE(s.calm);
  EXPECT_GT(calls, 100 + 350) << "nearly all of its patience was used";
}

TEST(CalmGate, WhenPatienceEndsDisturbedCallsCountAndAreSaidToBe) {
  Machine machine{.busy_ns = 3e6};
  CalmGate gate = machine.gate();
  gate.be_patient(5e6);
  Sample s;
  ASSERT_TRUE(gate.take(100, machine.kernel(), s));
  EXPECT_FALSE(s.calm);
  EXPECT_NEAR(s.run_ns, 2 * 100 * 10e3, 1);
  EXPECT_GE(machine.now_ns, 5e6);
  EXPECT_LT(machine.now_ns, 8e6) << "no more than its patience, then the sample";
}

// The kernel's wide arithmetic makes the clock fall by a third. It recovers while pulses are taken.
TEST(CalmGate, ALowerClockIsNobody) {
  Machine machine;
  double slower = 1;
  CalmGate gate(kCalmPulse / 1.1, [&] {
    const double at_this_clock = machine.work(kCalmPulse) * slower;
    slower = std::max(1.0, slower - 0.1);
    return Pulse{.ns = at_this_clock, .even_ns = kCalmPulse};
  });
  gate.be_patient(50e6);
  Sample s;
  const TakeSample kernel = machine.kernel();
  ASSERT_TRUE(gate.take(
      100,
      [&](int64_t n, Sample& slice) {
        slower = 1.3;
        return kernel(n, slice);
      },
      s));
  EXPECT_TRUE(s.calm);
  EXPECT_EQ(gate.retaken(), 0);
  EXPECT_NEAR(s.pulse_ns, 1.2 * kCalmPulse, 0.03 * kCalmPulse) << "the ratio to it says at which clock";
  EXPECT_NEAR(gate.low_ns(), kCalmPulse, 1);
}

TEST(CalmGate, LongCallsBeginWithAGapSoMostOfThemAreAlone) {
  // A call fills most of a gap: begun at any time of it but the first tenth, it runs into him. One that lasts
  // until the next gap passes for calm: that is why the lower quartile of a process is its time.
  Machine machine{.call_ns = 1.3e6, .busy_ns = 1.5e6};
  CalmGate gate = machine.gate();
  std::vector<double> calls_ns;
  for (int i = 0; i < 20; ++i) {
    gate.be_patient(20e6);
    Sample s;
    ASSERT_TRUE(gate.take(1, machine.kernel(), s));
    EXPECT_TRUE(s.calm);
    calls_ns.push_back(s.run_ns);
  }
  std::sort(calls_ns.begin(), calls_ns.end());
  EXPECT_NEAR(calls_ns[5], 1.3e6, 0.01 * 1.3e6);
  EXPECT_LE(machine.calls, 40);
}

TEST(CalmGate, AHopelessCallIsNotTriedAgain) {
  Machine machine{.busy_ns = 3e6};
  CalmGate gate = machine.gate();
  gate.be_patient(1e9);
  gate.give_up_above(15e3);
  Sample s;
  ASSERT_TRUE(gate.take(100, machine.kernel(), s));
  EXPECT_FALSE(s.calm);
  EXPECT_EQ(gate.retaken(), 0);
}

// Somebody who gets the core in turn with us: between two of our pulses he is never there, and what he leaves
// of the calls is in their time.
TEST(CalmGate, CallsThatLostTheCoreAreTakenAnewThoughNoPulseSawIt) {
  Machine machine;
  int64_t switches = 7;  // of before
  int slices = 0;
  CalmGate gate(
      kCalmPulse, [&] { return pulse(machine.work(kCalmPulse)); }, [&] { return switches; });
  gate.be_patient(50e6);
  Sample s;
  const auto every_third_is_interrupted = [&](int64_t n, Sample& slice) {
    slice.run_ns = slice.cpu_ns = machine.work(static_cast<double>(n) * machine.call_ns);
    if (++slices % 3 == 0) {
      ++switches;
      machine.now_ns += 4e6;
      slice.run_ns += 4e6;
    }
    return true;
  };
  ASSERT_TRUE(gate.take(100, every_third_is_interrupted, s));
  EXPECT_TRUE(s.calm);
  EXPECT_NEAR(s.run_ns, 100 * 10e3, 1) << "nothing of him is in it";
  EXPECT_EQ(gate.retaken(), slices / 3);
  EXPECT_EQ(gate.slices(), slices);
}

TEST(CalmGate, WhoAlwaysLosesTheCoreIsDisturbedWhenPatienceEnds) {
  Machine machine;
  int64_t switches = 0;
  CalmGate gate(
      kCalmPulse, [&] { return pulse(machine.work(kCalmPulse)); }, [&] { return ++switches; });
  gate.be_patient(5e6);
  Sample s;
  ASSERT_TRUE(gate.take(100, machine.kernel(), s));
  EXPECT_FALSE(s.calm);
  EXPECT_GT(machine.calls, 100 + 350) << "nearly all of its patience was used";
}

TEST(CalmGate, WhatWasLostBeforeTheSampleIsNoMatter) {
  Machine machine;
  int64_t switches = 0;
  CalmGate gate(
      kCalmPulse, [&] { return pulse(machine.work(kCalmPulse)); }, [&] { return switches; });
  gate.be_patient(50e6);
  Sample s;
  for (int i = 0; i < 5; ++i) {
    switches += 3;  // while outputs were compared
    ASSERT_TRUE(gate.take(100, machine.kernel(), s));
    EXPECT_TRUE(s.calm);
  }
  EXPECT_EQ(gate.retaken(), 0);
}

TEST(CalmGate, WhereThereIsNoPulseEveryCallCounts) {
  Machine machine{.busy_ns = 1.5e6};
  CalmGate gate(0, [] { return Pulse(); });
  gate.be_patient(50e6);
  Sample s;
  ASSERT_TRUE(gate.take(100, machine.kernel(), s));
  EXPECT_TRUE(s.calm);
  EXPECT_EQ(machine.calls, 100);
  EXPECT_EQ(gate.low_ns(), 0);
}

TEST(CalmGate, AKernelThatFailsEndsIt) {
  Sample s;
  EXPECT_FALSE(CalmGate(0, [] { return pulse(kCalmPulse); })
                   .take(
                       3, [](int64_t, Sample&) { return false; }, s));
}

// The real one, on whatever this is: it is finite and grows with nothing but the machine's state.
TEST(Pulse, IsSomeMicrosecondsOrNone) {
#if defined(__x86_64__)
  double fastest = 1e18, evenly = 1e18;
  for (int i = 0; i < 1000; ++i) {
    const Pulse taken = take_pulse();
    fastest = std::min(fastest, taken.ns);
    evenly = std::min(evenly, taken.even_ns);
  }
  EXPECT_GT(fastest, 100) << "500 rounds of 46 operations";
  // 16,000 additions of integers alone, at most six a cycle, at 2.88 GHz.
  EXPECT_GT(evenly, 16'000 / 6 / 2.88);
  EXPECT_LT(evenly, 10 * fastest);
#else
  EXPECT_EQ(take_pulse().ns, 0);
#endif
}

}  // namespace
}  // namespace tuner
