// Owns the list of all operators of the ai.onnx domain.
#ifndef DNNOPT_OPS_STANDARD_HPP
#define DNNOPT_OPS_STANDARD_HPP

#include <dnnopt/detail/implementation.hpp>
#include <dnnopt/ops/op_info.hpp>

#if DNNOPT_IMPLEMENT_OPERATORS
#include <dnnopt/ops/all.hpp>
#include <dnnopt/ops/ml/all.hpp>
#endif

namespace dnnopt {

/// Every operator of ai.onnx through opset 28 (onnx 1.23.2: 203 names), in its newest form; older forms are adapted on
/// import. Beside them those of ai.onnx.ml that are not expanded into them on import. A value: users add their own rows
/// to it. O(operators).
[[nodiscard]] op_set standard_ops();

#if DNNOPT_IMPLEMENT_OPERATORS
DNNOPT_BODY op_set standard_ops() {
  op_set set;
  set.add<ops::celu_op, ops::elu_op, ops::gelu_op, ops::hard_sigmoid_op, ops::hard_swish_op, ops::leaky_relu_op,
          ops::mish_op, ops::prelu_op, ops::relu_op, ops::selu_op, ops::shrink_op, ops::sigmoid_op, ops::softplus_op,
          ops::softsign_op, ops::swiglu_op, ops::swish_op, ops::tanh_op, ops::thresholded_relu_op>();
  set.add<ops::add_op, ops::sub_op, ops::mul_op, ops::div_op, ops::mod_op, ops::pow_op, ops::max_op, ops::min_op,
          ops::sum_op, ops::mean_op>();
  set.add<ops::attention_op, ops::linear_attention_op, ops::rotary_embedding_op>();
  set.add<ops::sequence_construct_op, ops::sequence_empty_op, ops::sequence_insert_op, ops::sequence_erase_op,
          ops::sequence_at_op, ops::sequence_length_op, ops::split_to_sequence_op, ops::concat_from_sequence_op,
          ops::optional_op, ops::optional_get_element_op, ops::optional_has_element_op>();
  set.add<ops::if_op, ops::loop_op, ops::scan_op, ops::sequence_map_op>();
  set.add<ops::cast_op, ops::cast_like_op, ops::bit_cast_op, ops::quantize_linear_op, ops::dequantize_linear_op,
          ops::dynamic_quantize_linear_op, ops::clip_op, ops::dropout_op>();
  set.add<ops::conv_op, ops::conv_transpose_op, ops::conv_integer_op, ops::qlinear_conv_op, ops::deform_conv_op,
          ops::causal_conv_with_state_op, ops::col2im_op>();
  set.add<ops::concat_op, ops::expand_op, ops::tile_op, ops::pad_op>();
  set.add<ops::gather_op, ops::gather_elements_op, ops::gather_nd_op>();
  set.add<ops::constant_op, ops::constant_of_shape_op, ops::range_op, ops::eye_like_op, ops::one_hot_op>();
  set.add<ops::equal_op, ops::greater_op, ops::greater_or_equal_op, ops::less_op, ops::less_or_equal_op, ops::and_op,
          ops::or_op, ops::xor_op, ops::not_op, ops::bitwise_and_op, ops::bitwise_or_op, ops::bitwise_xor_op,
          ops::bitwise_not_op, ops::bit_shift_op, ops::is_nan_op, ops::is_inf_op, ops::where_op>();
  set.add<ops::negative_log_likelihood_loss_op, ops::softmax_cross_entropy_loss_op>();
  set.add<ops::matmul_op, ops::gemm_op, ops::einsum_op, ops::matmul_integer_op, ops::qlinear_matmul_op, ops::det_op>();
  set.add<ops::softmax_op, ops::log_softmax_op, ops::hardmax_op, ops::batch_normalization_op,
          ops::instance_normalization_op, ops::layer_normalization_op, ops::group_normalization_op,
          ops::rms_normalization_op, ops::lrn_op, ops::lp_normalization_op, ops::mean_variance_normalization_op>();
  set.add<ops::transpose_op, ops::depth_to_space_op, ops::space_to_depth_op, ops::reverse_sequence_op>();
  set.add<ops::average_pool_op, ops::lp_pool_op, ops::max_pool_op, ops::global_average_pool_op, ops::global_lp_pool_op,
          ops::global_max_pool_op, ops::max_unpool_op, ops::max_roi_pool_op, ops::roi_align_op>();
  set.add<ops::random_normal_op, ops::random_uniform_op, ops::random_normal_like_op, ops::random_uniform_like_op,
          ops::bernoulli_op, ops::multinomial_op>();
  set.add<ops::rnn_op, ops::gru_op, ops::lstm_op>();
  set.add<ops::reduce_l1_op, ops::reduce_l2_op, ops::reduce_log_sum_op, ops::reduce_log_sum_exp_op, ops::reduce_max_op,
          ops::reduce_mean_op, ops::reduce_min_op, ops::reduce_prod_op, ops::reduce_sum_op, ops::reduce_sum_square_op,
          ops::arg_max_op, ops::arg_min_op, ops::cum_sum_op, ops::cum_prod_op>();
  set.add<ops::identity_op, ops::reshape_op, ops::flatten_op, ops::squeeze_op, ops::unsqueeze_op>();
  set.add<ops::resize_op, ops::upsample_op, ops::grid_sample_op, ops::affine_grid_op>();
  set.add<ops::scatter_elements_op, ops::scatter_op, ops::scatter_nd_op, ops::tensor_scatter_op>();
  set.add<ops::non_zero_op, ops::top_k_op, ops::unique_op, ops::non_max_suppression_op>();
  set.add<ops::shape_op, ops::size_op>();
  set.add<ops::dft_op, ops::stft_op, ops::hann_window_op, ops::hamming_window_op, ops::blackman_window_op,
          ops::mel_weight_matrix_op>();
  set.add<ops::slice_op, ops::split_op, ops::center_crop_pad_op, ops::trilu_op, ops::compress_op>();
  set.add<ops::string_concat_op, ops::string_split_op, ops::string_normalizer_op, ops::regex_full_match_op,
          ops::tf_idf_vectorizer_op, ops::image_decoder_op>();
  set.add<ops::abs_op, ops::acos_op, ops::acosh_op, ops::asin_op, ops::asinh_op, ops::atan_op, ops::atanh_op,
          ops::ceil_op, ops::cos_op, ops::cosh_op, ops::erf_op, ops::exp_op, ops::floor_op, ops::log_op, ops::neg_op,
          ops::reciprocal_op, ops::round_op, ops::sign_op, ops::sin_op, ops::sinh_op, ops::sqrt_op, ops::tan_op>();
  set.add<ops::ml::tree_ensemble_op, ops::ml::tree_ensemble_classifier_op, ops::ml::tree_ensemble_regressor_op,
          ops::ml::svm_classifier_op, ops::ml::svm_regressor_op, ops::ml::label_encoder_op, ops::ml::category_mapper_op,
          ops::ml::one_hot_encoder_op, ops::ml::zip_map_op, ops::ml::dict_vectorizer_op>();
  return set;
}
#endif

}  // namespace dnnopt

#endif  // DNNOPT_OPS_STANDARD_HPP
