#include <cmath>
#include <random>
#include <vector>

#include <catch2/catch.hpp>

#include <dnnopt/profile/pooled_means.hpp>
#include <dnnopt/profile/statistics.hpp>

using namespace dnnopt::profile;

TEST_CASE("percentiles of a sketch are within its error", "[profile][statistics]") {
  std::mt19937_64 random(5);
  std::lognormal_distribution<double> sample(10.0, 1.0);
  quantile_sketch sketch(0.01);
  std::vector<double> all;
  for (int i = 0; i < 20000; ++i) {
    all.push_back(sample(random));
    sketch.add(all.back());
  }
  for (const double q : {0.01, 0.5, 0.9, 0.99, 1.0}) {
    CAPTURE(q);
    CHECK(sketch.quantile(q) == Approx(exact_quantile(all, q)).epsilon(0.02));
  }
  CHECK(sketch.bins() < 700);
}

TEST_CASE("a sketch takes zero, weights, and growth in both directions", "[profile][statistics]") {
  quantile_sketch sketch;
  CHECK(sketch.quantile(0.5) == 0.0);
  sketch.add(0.0);
  CHECK(sketch.quantile(0.5) == 0.0);
  sketch.add(100.0, 8.0);
  sketch.add(1.0);
  CHECK(sketch.quantile(0.05) == 0.0);
  CHECK(sketch.quantile(0.15) == Approx(1.0).epsilon(0.01));
  CHECK(sketch.quantile(0.5) == Approx(100.0).epsilon(0.01));
  sketch.fade(0.5);
  CHECK(sketch.total_weight() == Approx(5.0));
  sketch.clear();
  CHECK(sketch.total_weight() == 0.0);
}

TEST_CASE("moments merge as if seen in one go", "[profile][statistics]") {
  std::mt19937_64 random(6);
  std::normal_distribution<double> sample(50.0, 4.0);
  running_moments one, left, right;
  for (int i = 0; i < 1000; ++i) {
    const double v = sample(random);
    one.add(v);
    (i % 3 == 0 ? left : right).add(v);
  }
  left.merge(right);
  CHECK(left.mean() == Approx(one.mean()));
  CHECK(left.variance() == Approx(one.variance()));
  CHECK(left.min() == one.min());
  CHECK(left.max() == one.max());
  CHECK(one.stddev() == Approx(4.0).epsilon(0.1));
}

TEST_CASE("weights correct a biased sample", "[profile][statistics]") {
  // Large values are picked ten times as often and weigh a tenth.
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> uniform(0.0, 1.0);
  running_moments weighted;
  for (int i = 0; i < 200000; ++i) {
    const double v = uniform(random);
    const double probability = v > 0.5 ? 0.5 : 0.05;
    if (uniform(random) < probability) weighted.add(v, 1.0 / probability);
  }
  CHECK(weighted.mean() == Approx(0.5).margin(0.01));
}

TEST_CASE("confidence intervals cover the mean at their rate", "[profile][statistics][property]") {
  std::mt19937_64 random(8);
  std::exponential_distribution<double> sample(0.1);
  int covered = 0;
  for (int trial = 0; trial < 1000; ++trial) {
    running_moments moments;
    for (int i = 0; i < 200; ++i) moments.add(sample(random));
    const interval range = moments.mean_interval();
    covered += range.lower <= 10.0 && 10.0 <= range.upper;
  }
  CHECK(covered > 920);
  CHECK(covered < 975);
}

TEST_CASE("the pseudo-median is the median of the means of all pairs", "[profile][statistics]") {
  std::mt19937_64 random(9);
  std::lognormal_distribution<double> sample(0.0, 1.0);
  for (const std::size_t count : std::vector<std::size_t>{1, 2, 3, 6, 7, 40}) {
    CAPTURE(count);
    std::vector<double> values;
    for (std::size_t i = 0; i < count; ++i) values.push_back(sample(random));
    std::vector<double> means;
    for (std::size_t i = 0; i < count; ++i)
      for (std::size_t j = i; j < count; ++j) means.push_back(0.5 * (values[i] + values[j]));
    const double expected = exact_quantile(means, 0.5);
    const location found = pseudo_median(values);
    CHECK(found.value == Approx(expected));
    CHECK(found.low <= found.value);
    CHECK(found.value <= found.high);
    CHECK(std::isfinite(found.width()) == (count >= 6));
  }
}

TEST_CASE("the pseudo-median's interval covers the median at its rate, and outliers hardly widen it",
          "[profile][statistics][property]") {
  std::mt19937_64 random(10);
  std::normal_distribution<double> core(5.0, 1.0);
  std::normal_distribution<double> tail(5.0, 50.0);
  std::uniform_real_distribution<double> uniform(0.0, 1.0);
  int covered = 0;
  double width = 0.0;
  constexpr int trials = 1000;
  for (int trial = 0; trial < trials; ++trial) {
    std::vector<double> values;
    for (int i = 0; i < 100; ++i) values.push_back(uniform(random) < 0.05 ? tail(random) : core(random));
    const location found = pseudo_median(values);
    covered += found.low <= 5.0 && 5.0 <= found.high;
    width += found.width() / trials;
  }
  CHECK(covered > 930);
  CHECK(covered < 970);
  // The mean of normal values alone would have an interval of 0.39.
  CHECK(width < 0.5);
}

TEST_CASE("exact quantiles interpolate between order statistics", "[profile][statistics]") {
  std::vector<double> values{4.0, 1.0, 3.0, 2.0};
  CHECK(exact_quantile(values, 0.0) == 1.0);
  CHECK(exact_quantile(values, 0.5) == 2.5);
  CHECK(exact_quantile(values, 1.0) == 4.0);
}

TEST_CASE("a series keeps its first value and clamps percentiles to what was seen", "[profile][statistics]") {
  series s;
  s.add(7.0);
  s.add(9.0);
  CHECK(s.first() == 7.0);
  CHECK(s.sum() == Approx(16.0));
  CHECK(s.quantile(1.0) <= 9.0);
  CHECK(s.quantile(0.0) >= 7.0);
}

TEST_CASE("means of few samples share what lies far above the usual, and their sum stays", "[profile][statistics]") {
  // Forty kernels of 3 to 7 us, 22 samples each; one launch in 200 takes 100 us longer, whichever it is.
  constexpr double outlier = 100e3;
  std::mt19937_64 random(3);
  std::normal_distribution<double> noise(0.0, 300.0);
  int plain_far = 0, pooled_far = 0, plain_outside = 0, outside = 0, kernels = 0;
  double sum_of_errors = 0.0;
  for (int repeat = 0; repeat < 50; ++repeat) {
    std::vector<series> all(40);
    double before = 0.0, after = 0.0;
    for (std::size_t k = 0; k < all.size(); ++k)
      for (int i = 0; i < 22; ++i)
        all[k].add(3000.0 + 100.0 * static_cast<double>(k) + noise(random) + (random() % 200 == 0 ? outlier : 0.0),
                   400.0);
    std::vector<const series*> pointers;
    for (const series& one : all) pointers.push_back(&one);
    const std::vector<pooled_mean> means = pooled_means(pointers);
    REQUIRE(means.size() == all.size());
    for (std::size_t k = 0; k < all.size(); ++k, ++kernels) {
      const double truth = 3000.0 + 100.0 * static_cast<double>(k) + outlier / 200.0;
      plain_far += std::abs(all[k].moments().mean() - truth) > 500.0 ? 1 : 0;
      pooled_far += std::abs(means[k].mean - truth) > 500.0 ? 1 : 0;
      const interval plain = all[k].moments().mean_interval();
      plain_outside += truth < plain.lower || truth > plain.upper ? 1 : 0;
      outside += truth < means[k].range.lower || truth > means[k].range.upper ? 1 : 0;
      sum_of_errors += means[k].mean - truth;
      before += all[k].sum();
      after += means[k].mean * all[k].weight();
    }
    CHECK(after == Approx(before).epsilon(1e-9));
  }
  // With an outlier among 22 samples, or without any, a plain mean is half of it or more beside the truth.
  CHECK(plain_far > kernels / 20);
  CHECK(pooled_far * 4 < plain_far);
  // Four outliers in all tell their own frequency within a half: the truth is outside a fifth of the intervals at most,
  // where nearly all of the plain ones, most of which saw no outlier, miss it.
  CHECK(outside < kernels / 5);
  CHECK(plain_outside > kernels * 3 / 4);
  CHECK(std::abs(sum_of_errors / kernels) < 60.0);
}

TEST_CASE("means of few samples share what lies far below the usual too", "[profile][statistics]") {
  // Forty kernels of 3 to 14.7 us, 20 samples each; of one launch in a hundred far too much was taken off.
  std::mt19937_64 random(4);
  std::normal_distribution<double> noise(0.0, 200.0);
  int plain_far = 0, pooled_far = 0, kernels = 0;
  double least = 0.0;
  for (int repeat = 0; repeat < 50; ++repeat) {
    std::vector<series> all(40);
    double before = 0.0, after = 0.0;
    for (std::size_t k = 0; k < all.size(); ++k)
      for (int i = 0; i < 20; ++i)
        all[k].add(random() % 100 == 0 ? 500.0 : 3000.0 + 300.0 * static_cast<double>(k) + noise(random), 500.0);
    std::vector<const series*> pointers;
    for (const series& one : all) pointers.push_back(&one);
    const std::vector<pooled_mean> means = pooled_means(pointers);
    for (std::size_t k = 0; k < all.size(); ++k, ++kernels) {
      const double truth = 3000.0 + 300.0 * static_cast<double>(k);
      const double allowed = std::max(500.0, 0.05 * truth);
      plain_far += std::abs(all[k].moments().mean() - truth) > 0.8 * allowed ? 1 : 0;
      pooled_far += std::abs(means[k].mean - truth) > 0.8 * allowed ? 1 : 0;
      least = std::min(least, means[k].mean - truth);
      before += all[k].sum();
      after += means[k].mean * all[k].weight();
    }
    CHECK(after == Approx(before).epsilon(1e-9));
  }
  CHECK(plain_far > kernels / 20);
  CHECK(pooled_far * 10 < plain_far);
  CHECK(least > -500.0);
}

TEST_CASE("what lies far above stays a series' own where samples show that series differ", "[profile][statistics]") {
  // On a processor other work interrupts a kernel the more often the longer it is.
  std::mt19937_64 random(10);
  std::normal_distribution<double> usual(0.0, 0.02);
  std::uniform_real_distribution<double> uniform(0.0, 1.0);
  constexpr double interruption = 400e3;
  std::vector<series> all(20);
  std::vector<double> truths;
  for (std::size_t k = 0; k < all.size(); ++k) {
    const double length = 50e3 * static_cast<double>(k + 1);
    const double often = length / 20e6;
    truths.push_back(length + often * interruption);
    for (int i = 0; i < 1000; ++i)
      all[k].add(length * (1.0 + usual(random)) + (uniform(random) < often ? interruption : 0.0), 10.0);
  }
  std::vector<const series*> pointers;
  for (const series& one : all) pointers.push_back(&one);
  const std::vector<pooled_mean> means = pooled_means(pointers);
  for (std::size_t k = 0; k < all.size(); ++k) {
    CAPTURE(k);
    // An equal share for all would be 10 us, and 50 us long kernels a fifth beside the truth.
    CHECK(means[k].mean == Approx(truths[k]).epsilon(0.05));
    CHECK(means[k].mean == Approx(all[k].moments().mean()).epsilon(0.03));
  }
}

TEST_CASE("of few samples what interrupts long kernels most is shared by their lengths", "[profile][statistics]") {
  // Thirty kernels of 20 to 600 us, 60 samples each, interrupted for 400 us once in 4 ms of their time.
  std::mt19937_64 random(12);
  std::normal_distribution<double> usual(0.0, 0.02);
  std::uniform_real_distribution<double> uniform(0.0, 1.0);
  constexpr double interruption = 400e3;
  double plain = 0.0, pooled = 0.0;
  for (int repeat = 0; repeat < 20; ++repeat) {
    std::vector<series> all(30);
    std::vector<double> truths;
    double before = 0.0, after = 0.0;
    for (std::size_t k = 0; k < all.size(); ++k) {
      const double length = 20e3 * static_cast<double>(k + 1);
      const double often = length / 4e6;
      truths.push_back(length + often * interruption);
      for (int i = 0; i < 60; ++i)
        all[k].add(length * (1.0 + usual(random)) + (uniform(random) < often ? interruption : 0.0), 10.0);
    }
    std::vector<const series*> pointers;
    for (const series& one : all) pointers.push_back(&one);
    const std::vector<pooled_mean> means = pooled_means(pointers);
    for (std::size_t k = 0; k < all.size(); ++k) {
      plain += std::pow(all[k].moments().mean() / truths[k] - 1.0, 2.0);
      pooled += std::pow(means[k].mean / truths[k] - 1.0, 2.0);
      before += all[k].sum();
      after += means[k].mean * all[k].weight();
    }
    CHECK(after == Approx(before).epsilon(1e-9));
  }
  // Squares of relative errors; sharing equally would leave the shortest kernels half beside the truth.
  CHECK(pooled < 0.5 * plain);
}
