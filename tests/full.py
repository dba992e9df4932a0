"""Which cases of large tests only `make full` runs, and which of these only `make nightly`: the tables MOVED and NIGHTLY,
whose rules are in case_rules.py.

`make test` runs all that is not marked `full`. A test has no row here unless its cases are a product that repeats a property:
then a rule says which of them stay, such that every property is still tested on every device. Cases of tests/unit that are
not `slow` always stay, so `make quick` is a part of `make test`. Of what `make full` runs, NIGHTLY moves on what repeats its other
cases.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import pytest
from case_rules import Rule, covering, every, none, one_device, only, plain, some, sparing, stays

MOVED: Final[Mapping[str, Rule]] = {
    # architectures × devices
    "conformance/language/test_decoders.py::test_logits_are_those_of_transformers": plain(covering(1)),
    "conformance/language/test_decoders.py::test_packed_weights_count_as_they_are": covering(1),
    "conformance/language/test_encoders.py::test_vectors_are_those_of_transformers": plain(covering(1)),
    "conformance/language/test_encoders.py::test_heads_are_those_of_transformers": only(name="mpnet"),
    "conformance/language/test_lora.py::test_gradients_are_those_of_pytorch": covering(1),
    "conformance/language/test_lora.py::test_gradients_go_through_packed_weights": covering(1),
    "conformance/language/test_quantised_folders.py::test_logits_are_those_of_the_floats": plain(covering(1)),
    "unit/gpu/test_decoding.py::test_a_text_token_by_token_has_the_scores_of_numpy": covering(1),
    "unit/language/test_side_by_side.py::test_scores_are_those_of_each_conversation_alone": covering(1),
    "browser/embedding/test_speech_pages.py": none(
        "test_speech_rules.py reads and cuts texts in node, and test_sound_pages.py opens a task of sounds"
    ),
    "unit/speech/test_whisper.py::test_what_it_says_of_a_window_is_what_the_reference_says": plain(covering(1)),
    "unit/speech/test_whisper.py::test_one_program_with_all_functions_says_what_several_models_say": only(
        device_name="numpy"
    ),
    "unit/language/test_rounded_weights.py::test_a_packed_product_of_one_normalised_row": only(device_name="wasm"),
    "browser/embedding/test_sound_pages.py::test_a_page_answers_what_python_answers": only(kind="voices"),
    "unit/files/test_resampling.py::test_blocks_of_any_size_make_the_same_numbers": every(3),
    "unit/files/test_resampling.py::test_the_error_of_each_tone": every(3),
    "unit/tasks/test_hearing.py::test_features_of_the_micro_frontend_are_the_same_integers": plain(some(2, one_device)),
    "unit/tasks/test_hearing.py::test_bands_are_those_of_kaldi_and_of_librosa": plain(some(2, one_device)),
    "unit/tasks/test_hearing.py::test_a_word_is_heard_in_blocks_of_any_size_as_in_the_whole": plain(one_device),
    "unit/tasks/test_hearing.py::test_a_spectrogram_transformer_hears_what_transformers_hears": plain(one_device),
    "unit/tasks/test_hearing.py::test_a_voice_is_a_vector_of_length_1": plain(one_device),
    "unit/tasks/test_sound_tasks.py::test_a_clean_sound_in_blocks_is_that_of_the_whole": plain(some(2, one_device)),
    "unit/tasks/test_sound_tasks.py::test_a_voice_in_blocks_of_any_size_has_the_scores_of_the_whole": some(
        2, one_device
    ),
    "unit/tasks/test_detect.py::test_a_head_is_recognised_and_gives_the_boxes_of_the_reference": every(3),
    "unit/tasks/test_detect.py::test_masks_are_made_of_patterns": only(kind="list"),
    "unit/tasks/test_detect.py::test_the_names_of_coco_are_in_the_models_own_numbering": only(name="torchvision"),
    "unit/tasks/test_pose.py::test_devices_answer_alike": plain(one_device),
    "unit/tasks/test_task_kinds.py::test_a_picture_is_resized_as_pillow_does": one_device,
    "unit/tasks/test_pose.py::test_people_have_the_points_of_the_reference": every(3),
    "unit/tasks/test_landmarks.py::test_points_lie_where_the_makers_own_pipeline_has_them": only(name="hands"),
    # rows × types × devices
    "unit/ops/test_rows.py::test_row": plain(covering(2, "row", "kind", "device_name")),
    "unit/ops/test_attention.py::test_attention_that_a_model_spells_out_is_one_kernel": some(2, one_device),
    "unit/ops/test_rows_as_onnx.py::test_a_row_leaves_in_every_type": every(24),
    "unit/gradients/test_gradients.py::test_gradient": every(48),
    "unit/gradients/test_gradients_regions.py::test_gradients_of_recurrent_rows": some(2, one_device),
    "unit/gradients/test_optim.py::test_adan_makes_the_steps_of_its_paper": some(2, one_device),
    "unit/gradients/test_optim.py::test_both_ways_to_gradients_train_alike": some(2, one_device),
    "unit/gradients/test_optim.py::test_each_device_makes_the_same_steps": some(2, one_device),
    "unit/gradients/test_optim.py::test_each_step_is_that_of_pytorch": every(4),
    "unit/gradients/test_optim_lbfgs.py::test_each_step_is_that_of_pytorch": every(2),
    "unit/gradients/test_optim_lbfgs.py::test_the_minimum_is_found_on_every_device": plain(covering(1)),
    "unit/gradients/test_optim_program.py::test_a_step_is_one_program_with_states": some(2, one_device),
    "unit/tensors/test_drawing_ways.py::test_ops_of_onnx_draw_the_same_in_every_way": one_device,
    "unit/tensors/test_drawing_ways.py::test_steps_and_bundles_draw_as_the_lines_do_eagerly": some(2, one_device),
    "unit/runtime/test_joined_rows.py::test_a_kernel_computes_each_row_as_numpy_does": only(name="float32"),
    "unit/runtime/test_joined_rows.py::test_a_step_with_joined_rows_learns_the_same": only(precision="float32"),
    "unit/runtime/test_fusion.py::test_training_steps_take_flat_time_and_memory": plain(one_device),
    "unit/compiler/test_joined.py::test_one_kernel_stores_all_with_the_right_answers": one_device,
    "unit/compiler/test_add_target.py::test_rows_print_as_c": every(40),
    "unit/tensors/test_array_api.py::test_a_function_gives_what_the_reference_gives": some(2, one_device),
    "unit/tensors/test_drawing.py::test_every_run_draws_the_next_numbers_of_the_shared_sequence": plain(every(4)),
    "unit/tensors/test_outside_holders.py::test_a_value_in_any_holder_is_that_of_each_run": every(3),
    "unit/nn/test_nn_onnx.py::test_onnxruntime_computes_each_layer_as_singe_does": every(3),
    "unit/nn/test_nn_onnx.py::test_each_layer_leaves_in_each_opset": none(
        "test_onnxruntime_computes_each_layer_as_singe_does, each in one opset"
    ),
    "unit/nn/test_nn_sequences.py::test_recurrent_layers": covering(1),
    "unit/tools/test_bench.py::test_products_of_odd_shapes_have_times": only(device="numpy"),
    "unit/cuda/test_cuda_text.py::test_nvrtc_compiles_every_template": only(architecture=90),
    "unit/cuda/test_cuda_text.py::test_nvrtc_compiles_every_cast": only(architecture=90),
    "unit/tensors/test_methods.py::test_method": one_device,
    "unit/tensors/test_pytorch_functions.py::test_method": one_device,
    "unit/tensors/test_pytorch_meanings.py::test_method": one_device,
    "unit/tensors/test_sizes.py::test_an_open_dimension_gives_what_its_number_gives": plain(some(3, one_device)),
    "unit/tensors/test_tensor.py::test_operation": one_device,
    "unit/nn/test_nn_layers.py::test_layers_are_compiled_with_an_open_batch": one_device,
    "unit/ops/test_attention.py::test_attention_is_its_formula": plain(covering(1)),
    "unit/ops/test_fourier.py::test_long_transforms": one_device,
    "unit/ops/test_recurrent.py::test_recurrent": one_device,
    "unit/ops/test_scattered_sums.py::test_scattered_sums_have_numpys_numbers": only(device_name="wasm"),
    "unit/program/test_sessions.py::test_a_thousand_runs_agree_with_numpy_and_copy_no_state": plain(covering(1)),
    "unit/program/test_storage.py::test_files_decode_to_the_weights": covering(1),
    # sizes × forms of products and convolutions
    "unit/wasm/test_wasm_routines.py::test_conv": covering(1),
    "unit/wasm/test_wasm_routines.py::test_conv_of_open_space": every(16),
    "unit/wasm/test_wasm_routines.py::test_few_rows_of_an_open_number_take_several_panels": every(4),
    "unit/wasm/test_wasm_routines.py::test_matmul_of_many_shapes": covering(1),
    "unit/wasm/test_wasm_routines.py::test_matmul_of_symbolic_sizes": every(4),
    "unit/wasm/test_wasm_routines.py::test_winograd": covering(1),
    "unit/wasm/test_wasm_routines.py::test_winograd_along_one_axis": covering(1),
    "unit/webgpu/test_wgsl_blocks.py::test_every_cut_unpacks_the_weights": covering(1),
    "unit/webgpu/test_wgsl_integers.py::test_both_variants_are_exact": covering(1),
    "unit/webgpu/test_wgsl_matrix.py::test_products": every(10),
    "unit/webgpu/test_wgsl_products.py::test_every_cut": none(
        "test_wgsl_tune.py::test_all_candidates_are_timed_and_answer_alike runs the cuts of a product, test_rows.py products of all forms"
    ),
    "unit/webgpu/test_wgsl_products.py::test_every_cut_of_a_convolution": none(
        "test_every_cut runs the same template, and unit/webgpu/test_wgsl_cuts.py convolutions with the cuts chosen"
    ),
    "unit/webgpu/test_wgsl_products.py::test_every_cut_of_few_rows": none(
        "test_every_cut runs the same template, and test_rows.py and test_wgsl_cuts.py products of few rows with the cuts chosen"
    ),
    "unit/wasm/test_wasm_routines.py::test_winograd_of_open_space": every(3),
    # states × ways of processes, damage × formats
    "unit/files/test_records_damage.py::test_every_value_replaced_by_hostile_ones": every(4),
    "unit/compiler/test_open_sizes.py::test_one_program_serves_all_sizes": every(3),
    "unit/program/test_program_format.py::test_every_value_replaced_by_hostile_ones": only(part=0),
    "unit/program/test_load_memory.py::test_weights_are_held_once": plain(every(6)),
    "unit/wasm/test_wasm_native.py::test_a_script_ends_silently": every(8),
    "unit/tools/test_freestanding.py::test_every_engine_answers_as_the_device_does": covering(1),
    "unit/files/test_weights_hdf5.py::test_mutations_are_read_or_refused": none(
        "the case that `make quick` runs has the same changes, fewer of them"
    ),
    "unit/files/test_weights_files.py::test_mutations_are_read_or_refused": none(
        "the case that `make quick` runs has the same changes, fewer of them"
    ),
    "unit/files/test_weights_pytorch_damage.py::test_mutated_pickles_are_read_or_refused": none(
        "the case that `make quick` runs has the same changes, fewer of them"
    ),
    "unit/files/test_hostile_pickles.py::test_values_that_hold_each_other_are_read_or_refused_in_bounded_time": none(
        "the case that `make quick` runs has each kind of value"
    ),
    "unit/program/test_hostile_programs.py::test_changed_programs_are_refused_or_run": only(first=0),
    "unit/tensors/test_drawn_functions.py::test_many_random_functions_draw_the_same_eagerly_and_compiled": plain(
        only(first=1)
    ),
    "unit/runtime/test_forks.py::test_a_forked_process_runs_or_refuses": plain(covering(1)),
    "unit/runtime/test_host.py::test_sorts_along_long_and_open_axes": only(device_name="wasm"),
    "unit/tools/test_interrupts.py::test_ctrl_c_ends_a_command_in_native_code": every(4),
    "unit/tools/test_interrupts.py::test_a_command_that_cannot_write_says_so_in_a_line": every(6),
    "unit/tools/test_quantised_bundles.py::test_a_bundle_is_as_small_as_a_real_model": none(
        "test_a_bundle_is_as_small_as_its_model, of small models"
    ),
    "unit/tools/test_quantised_bundles.py": every(4),
    # ONNX's cases, those of com.microsoft, and families of models × devices
    "conformance/nodes/test_microsoft.py::test_it_agrees_with_onnxruntime": some(2, one_device),
    "conformance/nodes/test_microsoft_layers.py::test_it_agrees_with_onnxruntime": some(2, one_device),
    "conformance/nodes/test_microsoft_layers.py::test_it_follows_its_formula": one_device,
    "conformance/nodes/test_onnx_control.py::test_recurrent_layers": one_device,
    "conformance/nodes/test_onnx_ml.py::test_one_node": one_device,
    "conformance/nodes/test_onnx_nodes.py::test_node": some(4, one_device),
    "conformance/nodes/test_onnx_nodes.py::test_open_dimensions_need_no_numbers": none(
        "drawn/test_open_ops.py and drawn/test_open_dimensions.py open the sizes of other ops; each case is run with its own"
    ),
    "conformance/nodes/test_onnx_sampling.py::test_op": one_device,
    "conformance/nodes/test_saved_nodes.py::test_a_case_is_read_written_and_read_again": only(part=3),
    "conformance/nodes/test_saved_nodes.py::test_no_case_is_left_out_unseen": none(
        "the cases themselves are compared, one in twelve by `make test`"
    ),
    "conformance/nodes/test_saved_nodes.py::test_cases_are_written_in_older_opsets": none(
        "unit/nn/test_nn_onnx.py and drawn/test_saved_graphs.py write in older opsets"
    ),
    "conformance/nodes/test_ops_table.py": none(
        "a page of the documentation: nothing but the page is wrong if it is old"
    ),
    "conformance/nodes/test_onnx_versions.py::test_version": one_device,
    "conformance/nodes/test_quantised_ops.py::test_op": one_device,
    "conformance/nodes/test_onnx_ranks.py::test_a_voice_detector_is_one_program": plain(one_device),
    "conformance/nodes/test_onnx_runner.py::test_onnx_runner_takes_types_that_numpy_lacks": none(
        "test_onnx_nodes.py runs such cases; make full drives the runner of ONNX itself"
    ),
    "conformance/models/test_demo_models.py::test_drawn_digits_are_read": only(device_name="wasm"),
    "conformance/models/test_cli_photos.py::test_the_first_label": plain(every(10)),
    "conformance/models/test_computed_shapes.py": one_device,
    "conformance/models/test_exporters.py::test_nodes_of_exporters": one_device,
    "conformance/models/test_families.py::test_families": plain(every(30)),
    "conformance/models/test_onnx_models.py::test_light_model": some(4, one_device),
    "conformance/models/test_onnx_models.py::test_small_model": some(2, one_device),
    "conformance/models/test_quantised_models.py::test_model": some(4, one_device),
    "conformance/models/test_quantised_models.py::test_products_are_of_integers_on_wasm": every(5),
    "conformance/models/test_real_models.py::test_model": some(4, plain(one_device)),
    "conformance/models/test_transformers.py": plain(some(2, one_device)),
    "conformance/models/test_saved_models.py::test_a_family_is_read_and_written_again": every(10),
    "conformance/models/test_saved_models.py::test_a_model_is_written_in_each_opset": none(
        "test_a_model_is_read_and_written_again, of the small models in one opset"
    ),
    "conformance/models/test_programs.py::test_text_is_the_same_in_every_process": every(2),
    "conformance/models/test_real_models.py::test_a_backend_of_another_package": every(6),
    "conformance/models/test_real_models.py::test_sentence_encoder": plain(one_device),
    # tokenizers × texts, and random changes of their files
    "conformance/language/test_tokenizer_families.py::test_ids_and_texts_are_those_of_hugging_face": only(part=0),
    "conformance/language/test_tokenizer_families.py::test_a_gguf_file_gives_the_same_ids": only(part=1),
    "conformance/tflite/test_tflite_ops.py::test_an_op_computes_what_the_interpreter_does": one_device,
    "conformance/tflite/test_hostile_tflite.py::test_changed_files_are_read_or_refused": only(part=0),
    "conformance/language/test_hostile_gguf.py": only(part=0),
    "conformance/language/test_hostile_tokenizers.py": only(part=0),
    "conformance/language/test_hostile_tokenizers.py::test_nested_and_endless_files_are_refused": every(1),
    "conformance/language/test_hostile_tokenizers.py::test_long_words_take_time_in_proportion": every(1),
    "conformance/language/test_templates.py::test_changed_templates_are_refused_or_end": only(part=0),
    "conformance/language/test_language_in_javascript.py::test_changed_templates_are_refused_or_end": only(part=0),
    "conformance/language/test_language_in_javascript.py::test_changed_files_are_read_or_refused": only(part=0),
    "conformance/language/test_language_in_javascript.py::test_ids_and_texts_are_those_of_hugging_face": every(4),
    # random models, by seeds
    "conformance/drawn/test_beside_onnxruntime.py::test_models_agree_at_every_size": every(4),
    "conformance/drawn/test_changed_models.py::test_changed_models_are_refused_or_run": only(first=0),
    "conformance/drawn/test_open_ops.py::test_answers_and_errors": some(3, one_device),
    "conformance/drawn/test_slices.py::test_every_slice_of_every_small_size": none(
        "test_some_slices_of_every_small_size"
    ),
    "conformance/drawn/test_saved_graphs.py::test_onnxruntime_computes_random_graphs": every(6),
    "conformance/drawn/test_saved_graphs.py::test_singe_reads_random_graphs_again": every(6),
    "conformance/drawn/test_random_graphs.py::test_devices_agree_with_the_evaluator": plain(every(8)),
    # layers, losses and norms × devices, beside PyTorch
    "training/peers/test_functions.py::test_results_are_those_of_pytorch": some(2, one_device),
    "training/peers/test_grads.py::test_gradients_of_layers_equal_pytorchs": some(3, one_device),
    "training/peers/test_losses.py::test_every_loss_takes_open_batches": one_device,
    "training/peers/test_losses.py::test_values_and_gradients_are_pytorchs": some(10, one_device),
    "training/peers/test_models.py::test_models_are_trained_as_pytorchs": plain(every(3)),
    "training/peers/test_modules.py::test_gradients_of_layers_are_pytorchs": some(4, one_device),
    "training/peers/test_norms.py": some(2, one_device),
    "training/runs/test_killed.py::test_a_killed_run_goes_on_to_the_bit": every(8),
    "training/test_calls.py::test_calls_give_what_pytorch_gives": only(device_name="numpy"),
    "training/test_nonfinite.py::test_a_step_that_passes_its_checks_is_one_without": plain(some(4, one_device)),
    "training/test_counting_models.py::test_a_model_that_computes_with_what_it_changes_is_refused_by_name": every(3),
    "training/test_cluster.py::test_an_interrupted_run_goes_on_with_another_number_of_workers": none(
        "test_learner.py::test_a_run_goes_on_exactly interrupts runs, and other tests here change the number of workers"
    ),
    "training/test_cluster.py::test_workers_skip_a_step_of_which_one_loss_is_not_finite": none(
        "test_nonfinite.py skips such steps of several devices in a process"
    ),
    "training/test_cluster.py::test_workers_share_dicts_and_compute_in_a_precision": none(
        "test_parallel.py has both of several devices in a process, the other tests here batches of arrays"
    ),
    "training/test_cluster.py::test_training_goes_on_from_a_checkpoint_when_all_workers_are_lost": none(
        "test_a_worker_that_is_killed_loses_no_step and, of a process that is killed, runs/test_killed.py"
    ),
    "training/test_cluster.py::test_a_run_without_a_folder_ends_when_all_workers_are_lost": none(
        "test_a_worker_that_is_killed_loses_no_step and test_an_error_of_what_a_worker_runs_is_raised"
    ),
    "training/test_cluster.py::test_a_step_over_workers_serves_a_loop_of_ones_own": none(
        "test_workers_train_as_one_process_with_the_whole_batch takes the same steps by a Learner"
    ),
    "training/test_cluster.py::test_workers_refuse_a_model_that_computes_with_its_own_count_by_name": none(
        "test_counting_models.py refuses such models in one process"
    ),
    "training/test_step.py::test_a_part_of_a_batch_may_be_a_module": one_device,
    "training/test_layer_statistics.py::test_the_gradients_are_those_of_the_next_step": one_device,
    "training/test_learner.py::test_a_run_goes_on_exactly": every(8),
    "training/runs/test_hostile_runs.py::test_hostile_folders_are_read_or_refused_in_bounded_time": only(count=16),
    # pages: hosts × devices × models, and what installs a bundler
    "browser/demos/test_classify_page.py::test_looks": every(3),
    "browser/demos/test_classify_page.py::test_the_table_compares": none(
        "demos/test_front_page.py runs the same comparison of devices, and test_mnist_page.py a model on each"
    ),
    "browser/demos/test_classify_page.py::test_no_picture_at_all": every(3),
    "browser/demos/test_classify_page.py::test_a_sample_that_cannot_be_had": none(
        "embedding/test_bundle_page.py has what cannot be fetched"
    ),
    "browser/demos/test_classify_page.py::test_samples": none(
        "test_upload and test_drop_and_paste classify in the same page; test_cli_photos.py has the same photos"
    ),
    "browser/demos/test_classify_page.py::test_pictures_are_turned_upright": none(
        "embedding/test_picture.py turns pictures by EXIF in the same script"
    ),
    "browser/demos/test_classify_page.py::test_the_paste_button": none(
        "test_drop_and_paste pastes into the same page; test_embedding.py reads the clipboard"
    ),
    "browser/demos/test_classify_page.py::test_a_camera_that_is_refused_or_absent": none(
        "embedding/test_embedding.py has cameras that are refused, test_broken what this page says of what it cannot have"
    ),
    "browser/demos/test_classify_page.py::test_samples_through_python": none(
        "python/test_pyodide_hosts.py runs models through Python in a page"
    ),
    "browser/demos/test_docs_cells.py::test_all_cells_of_a_page_run": none(
        "docs/test_snippets.py runs the blocks of each page, test_cells_are_changed_fail_and_stop a page's own"
    ),
    "browser/demos/test_front_python.py::test_a_restart_that_fails_leaves_a_prompt_that_says_so": none(
        "the other tests of the prompt start, stop and restart Python; demos/test_offline.py has the failures of a network"
    ),
    "browser/demos/test_front_python.py::test_python_comes_back_without_a_network": none(
        "demos/test_offline.py has every page without a network"
    ),
    "browser/demos/test_front_python.py::test_what_is_given_while_python_starts_waits_for_it": none(
        "test_python_evaluates waits for the same start"
    ),
    "browser/demos/test_front_python_values.py": none("demos/test_front_python.py evaluates in the same prompt"),
    "browser/demos/test_mnist_page.py::test_a_bundle_that_cannot_be_had_is_an_error": none(
        "embedding/test_bundle_page.py has such a bundle"
    ),
    "browser/demos/test_mnist_page.py::test_it_reads_without_a_network": none(
        "demos/test_offline.py has every page without a network"
    ),
    "browser/demos/test_mnist_page.py::test_on_a_plain_host": none("demos/test_offline.py has a host without headers"),
    "browser/demos/test_mnist_page.py::test_looks": every(3),
    "browser/demos/test_mnist_page.py::test_a_gpu_device_that_is_destroyed_in_mid_run": none(
        "runner/test_runner_chromium.py::test_a_lost_device_is_opened_anew"
    ),
    "browser/demos/test_mnist_page.py::test_without_webassembly_it_leaves_for_webgpu": none(
        "test_without_webgpu and test_without_anything_it_says_so have what is absent"
    ),
    "browser/demos/test_mnist_page.py::test_both_ways_answer_the_same": none(
        "python/test_pyodide_hosts.py compares Python in a page with the runner"
    ),
    "browser/demos/test_mnist_page.py::test_every_hand_is_read": every(13),
    "browser/demos/test_run_report.py": every(4),
    "browser/demos/test_site_axe.py": every(4),
    "browser/demos/test_train_page.py::test_it_trains_on_webgpu": none(
        "flow/test_training_step.py trains on WebGPU in a page"
    ),
    "browser/demos/test_train_page.py::test_without_python_its_choices_are_off": none(
        "test_mnist_page.py::test_without_python"
    ),
    "browser/demos/test_train_page.py::test_it_trains_by_python": none(
        "test_python_trains_as_javascript_does does so too"
    ),
    "browser/demos/test_train_page.py::test_looks": every(3),
    "browser/demos/test_train_page.py::test_python_trains_as_javascript_does": none(
        "python/test_pyodide_hosts.py trains through Python in a page, flow/test_training_step.py in JavaScript"
    ),
    "browser/demos/test_train_page.py::test_the_losses_of_its_steps_are_the_native_ones": none(
        "flow/test_training_step.py compares the losses of steps on each device in a page and in node"
    ),
    "browser/demos/test_train_page.py::test_it_is_taught": none(
        "test_mnist_page.py::test_it_is_taught_a_hand_and_keeps_it"
    ),
    "browser/demos/test_train_page.py::test_keys_take_strokes_back": none(
        "test_mnist_page.py::test_blank_undo_and_clear has the same sheet"
    ),
    "browser/demos/test_state_bar.py::test_a_control_that_is_in_sight_can_be_pressed": every(3),
    "browser/embedding/test_bundlers.py": none(
        "embedding/test_npm.py builds a page of the npm package with Vite; the projects are compared with their guide"
    ),
    "browser/embedding/test_bundlers.py::test_the_guide_shows_the_projects": every(1),
    "browser/embedding/test_frameworks.py::test_a_component_answers_for_a_picture": none(
        "embedding/test_npm.py builds a page with Vite; the components are compared with their guide"
    ),
    "browser/embedding/test_task_pages.py::test_a_page_runs_several_models_as_python_does": only(device="wasm"),
    "browser/embedding/test_task_pages.py::test_an_element_follows_a_camera": none(
        "test_the_page_of_a_bundle_follows_a_camera, and test_an_element_is_a_task_without_javascript uses the element"
    ),
    "browser/embedding/test_text_tasks.py::test_a_page_answers_for_texts_what_python_answers": only(kind="tag"),
    "browser/embedding/test_npm.py::test_the_modules_have_types_and_the_declarations_are_those_that_tsc_writes": none(
        ".ci/javascript.py, which `make test` calls before, compares the same declarations"
    ),
    "browser/embedding/test_picture.py::test_photos_are_classified_alike": none(
        "test_photos_become_what_python_makes_of_them compares what a network is given"
    ),
    "browser/embedding/test_picture.py::test_photos_become_what_python_makes_of_them": every(4),
    "browser/flow/test_branches.py::test_a_branch_checks_sizes_only_where_it_runs": covering(1),
    "browser/flow/test_donated_inputs.py::test_arrays": covering(1),
    "browser/flow/test_flows.py": every(6),
    "browser/flow/test_flows.py::test_a_disposed_model_has_no_sessions": plain(every(6)),
    "browser/flow/test_flows.py::test_a_model_without_states_has_no_sessions": plain(every(6)),
    "browser/flow/test_flows.py::test_a_run_whose_outputs_are_refused_leaves_the_states": plain(every(6)),
    "browser/flow/test_flows.py::test_overlapping_calls_of_a_session_follow_each_other": plain(every(6)),
    "browser/flow/test_flows.py::test_exported_models_with_states_run_a_thousand_times": plain(every(6)),
    "browser/flow/test_open_bundles.py::test_one_bundle_serves_all_sizes": plain(every(4)),
    "browser/models/test_families_page.py::test_every_family_runs_in_a_page": none(
        "conformance/models/test_families.py runs every family on a device, models/test_transformers_page.py some in a page"
    ),
    "browser/models/test_families_page.py::test_some_families_run_in_a_page_on_webgpu": none(
        "conformance/models/test_families.py runs families on WebGPU, demos/test_mnist_page.py a page on it"
    ),
    "browser/models/test_language_page.py::test_tokens_share_commands": none(
        "unit/gpu/test_decoding.py counts the commands of a token, natively"
    ),
    "browser/models/test_stored_weights.py::test_a_manifest_that_lies_is_refused": covering(1),
    "browser/models/test_stored_weights.py::test_models": every(12),
    "browser/models/test_transformers_page.py": plain(every(8)),
    "browser/python/test_pyodide_hosts.py": every(14),
    "browser/python/test_pyodide_hosts.py::test_batches": plain(every(14)),
    "browser/python/test_pyodide_hosts.py::test_donated_inputs": plain(every(14)),
    "browser/python/test_pyodide_hosts.py::test_losses_of_training_are_the_native_ones": plain(every(14)),
    "browser/python/test_pyodide_hosts.py::test_sessions": plain(every(14)),
    "browser/python/test_pyodide_hosts.py::test_float64_and_strings_run_or_say_where": plain(every(14)),
    "browser/python/test_pyodide_hosts.py::test_inputs_that_do_not_fit": plain(every(14)),
    "browser/python/test_pyodide_hosts.py::test_models": every(18),
    "browser/python/test_pyodide_hosts.py::test_modules": plain(every(14)),
    "browser/python/test_pyodide_hosts.py::test_who_asks_for_a_device_gets_the_same": plain(every(14)),
    "browser/python/test_pyodide_hosts.py::test_a_strict_policy": none(
        "embedding/test_policies.py has such policies, test_a_device_whose_scripts_are_to_be_imported the scripts for them"
    ),
    "browser/python/test_pyodide_hosts.py::test_a_model_that_was_not_compiled_before_is_compiled_in_the_page": none(
        "test_external_data_and_what_singe_refuses_come_to_the_page compiles one there, dropin/test_ort.py runs bundles on both devices"
    ),
    "browser/python/test_pyodide_hosts.py::test_a_tab_that_dies_is_replaced_by_one_that_has_learnt_the_same": none(
        "it tests what these tests do where a tab dies, which is rare"
    ),
    "browser/runner/test_auto.py::test_nothing_is_spent_where_there_is_no_gpu": every(3),
    "browser/runner/test_engines.py::test_a_page_that_lacks": every(6),
    "browser/runner/test_memory.py::test_the_peak_while_loading": only(way="webgpu", cache=True),
    "browser/runner/test_cache.py": plain(one_device),
    "browser/runner/test_cache.py::test_every_byte_of_a_folder_is_fetched_once": every(1),
    "browser/runner/test_cache.py::test_offline": every(1),
    "browser/runner/test_outputs.py::test_arrays_are_filled_by_threads": none(
        "test_arrays_are_filled, and browser/runner/test_threads.py runs in threads"
    ),
    "browser/runner/test_prototype_names.py::test_in_a_page": only(device="wasm"),
    "browser/runner/test_profile.py::test_no_seconds_run_nothing": plain(one_device),
    "browser/runner/test_profile.py::test_of_other_models": only(name="dtypes", device="wasm"),
    "browser/runner/test_profile.py::test_every_clock_sees_what_takes_long": every(2),
    "browser/runner/test_trips.py::test_with_a_version_alone": none(
        "test_with_hints and test_without_hints count such trips"
    ),
    "browser/runner/test_trips.py::test_with_hints_in_a_worker": none(
        "test_without_hints_in_a_worker, and test_with_hints of the page itself"
    ),
    "browser/runner/test_runner_chromium.py::test_a_missing_file": plain(one_device),
    "browser/runner/test_runner_chromium.py::test_a_wrong_hash": plain(one_device),
    "browser/runner/test_runner_chromium.py::test_abort_while_downloading": plain(one_device),
    "browser/runner/test_runner_chromium.py::test_models": plain(every(9)),
    "browser/runner/test_worker.py": plain(one_device),
    "browser/runner/test_worker.py::test_the_same_interface": every(1),
    # pages of the documentation
    "docs/test_commands.py::test_a_script_starts": every(20),
    "docs/test_docs_pages.py::test_axe_finds_nothing": every(10),
    "docs/test_newcomer.py::test_a_task_is_done_as_its_page_says": none(
        "docs/test_readme.py types the README as a newcomer does"
    ),
    "docs/test_snippets.py::test_the_blocks_of_a_page_run": every(20),
    "browser/demos/test_classify_page.py::test_samples_on_each_backend": none(
        "test_samples is on WebAssembly, demos/test_mnist_page.py on WebGPU; conformance/models/test_cli_photos.py has this network"
    ),
    "browser/demos/test_docs_cells.py::test_cells_draw": none(
        "demos/test_front_python_values.py draws in the same prompt"
    ),
    "browser/demos/test_front_page.py": none(
        "what the front page shows in detail; the tests below open it, run it and read it"
    ),
    "browser/demos/test_front_page.py::test_it_can_be_read": every(3),
    "browser/demos/test_front_page.py::test_it_shows_where_the_time_goes": only(device="wasm"),
    "browser/demos/test_front_page.py::test_nothing_heavy_is_loaded_before_it_is_asked_for": every(1),
    "browser/demos/test_front_page.py::test_the_benchmark_runs_on_each_device_and_its_result_is_copied": every(1),
    "browser/demos/test_front_python.py": none(
        "test_python_evaluates, below, uses the same prompt, and test_docs_cells.py stops what never ends in it"
    ),
    "browser/demos/test_front_python.py::test_python_evaluates": every(1),
    "browser/demos/test_mnist_page.py::test_digits_are_read_on_each_backend": only(backend="wasm"),
    "browser/demos/test_mnist_page.py::test_fingers_and_pens_draw": every(2),
    "browser/demos/test_offline.py::test_a_host_without_headers_is_isolated_after_one_reload": every(2),
    "browser/demos/test_site.py::test_a_page_can_be_read_by_a_screen_reader": every(3),
    "browser/demos/test_site.py::test_a_second_build_writes_nothing_anew_and_removes_what_is_old": none(
        "the site is built once, and its files are compared, by the other tests of this file"
    ),
    "browser/demos/test_site.py::test_pages_link_to_the_documentation_if_it_is_there": none(
        "docs/test_docs_site.py follows every link"
    ),
    "browser/embedding/test_bundle_page.py::test_a_chosen_picture_is_classified": only(device="wasm"),
    "browser/embedding/test_bundle_page.py::test_a_bundle_without_its_labels_runs": every(2),
    "browser/embedding/test_bundle_page.py::test_every_dtype_is_filled": every(3),
    "browser/embedding/test_bundle_page.py::test_how_it_looks": only(name="phone"),
    "browser/embedding/test_bundle_page.py::test_inputs_of_whole_numbers_are_filled": every(3),
    "browser/embedding/test_bundle_page.py::test_a_picture_is_dropped_or_pasted": every(2),
    "browser/embedding/test_bundle_page.py::test_numbers_as_json": every(4),
    "browser/embedding/test_bundle_page.py::test_wrong_numbers_are_told": every(5),
    "browser/embedding/test_element.py": every(2),
    "browser/embedding/test_embedding.py::test_a_frame_of_another_origin": every(5),
    "browser/embedding/test_embedding.py::test_a_frame_of_another_origin_in_an_isolated_page": every(3),
    "browser/embedding/test_embedding.py::test_a_frame_of_another_origin_has_the_camera_and_the_clipboard_if_the_page_lets_it": every(
        2
    ),
    "browser/embedding/test_embedding.py::test_a_frame_of_the_page_s_origin": every(4),
    "browser/embedding/test_embedding.py::test_a_module": every(4),
    "browser/embedding/test_npm.py::test_vite": every(2),
    "browser/embedding/test_policies.py::test_trusted_types": every(4),
    "browser/flow/test_donated_inputs.py::test_buffers_on_the_gpu": every(2),
    "browser/flow/test_drawn_bundles.py::test_random_graphs_run_in_node": every(3),
    "browser/flow/test_open_bundles.py::test_memory_is_that_of_the_largest_run": only(where="wasm"),
    "browser/models/test_integers.py::test_chromium_gives_the_bits_of_numpy": every(4),
    "browser/models/test_own_ops_page.py::test_a_page_runs_the_shader": every(2),
    "browser/models/test_quantised_page.py::test_in_chromium": only(device="wasm"),
    "browser/models/test_quantised_page.py::test_it_decodes_bit_by_bit_what_python_does": every(2),
    "browser/models/test_sorts_and_sums.py::test_sorts_and_scattered_sums_in_node": every(2),
    "browser/models/test_stored_weights.py::test_chromium": every(4),
    "browser/runner/test_little_memory.py": every(3),
    "browser/runner/test_memory.py::test_many_loads_leave_nothing": only(way="wasm"),
    "browser/runner/test_memory.py::test_many_loads_leave_nothing_in_node": only(threads=1),
    "browser/runner/test_outputs.py::test_arrays_are_filled": every(3),
    "browser/runner/test_profile.py::test_it_adds_up_and_counts_each_step_once": every(4),
    "browser/runner/test_runner_node.py::test_models": every(2),
    "browser/runner/test_trips.py": only(folder="joined"),
    "browser/runner/test_threads.py::test_the_same_bits_on_any_number_of_threads": every(4),
    "browser/runner/test_threads.py::test_where_there_is_one_only": every(4),
    "conformance/models/test_demo_models.py::test_it_equals_the_onnx_model": plain(every(2)),
    "conformance/models/test_demo_models.py::test_records_of_float16_are_small_and_decide_alike": plain(every(2)),
    "conformance/nodes/test_microsoft.py::test_forms_agree": every(3),
    "conformance/nodes/test_onnx_runner.py::test_onnx_runner_as_it_comes": none(
        "test_onnx_runner_takes_types_that_numpy_lacks drives the same runner, test_onnx_nodes.py every second case"
    ),
    "docs/test_snippets.py::test_the_pages_of_pictures_and_sounds_take_files": none(
        "embedding/test_picture.py and test_sound.py give files to the same pages"
    ),
    "training/runs/test_train_command.py::test_examples_train_in_float16": every(4),
    "training/test_cluster.py::test_a_worker_that_is_killed_loses_no_step": none(
        "test_a_lost_worker_is_replaced, of workers that the test plays, and of a process that is killed, runs/test_killed.py"
    ),
    "training/test_parallel.py::test_several_devices_are_as_one_with_the_whole_batch": every(4),
    "unit/compiler/test_compile_time.py::test_four_times_the_nodes_take_four_times_as_long": every(3),
    "unit/compiler/test_open_sizes.py::test_specialised_sizes_share_the_weights_and_the_program": plain(every(3)),
    "unit/remote/test_remote_safety.py::test_many_mutated_sessions": none(
        "test_mutated_sessions_are_refused_with_an_error_of_singes holds some of them"
    ),
    "unit/cuda/test_cuda_text.py::test_nvrtc_compiles_the_kernels_of_real_models": only(
        model="mnist_cnn", architecture=90
    ),
    "unit/cuda/test_cuda_text.py::test_nvrtc_compiles_every_golden_kernel": only(architecture=90),
    "unit/program/test_word_checks.py::test_a_changed_word_is_refused_or_leaves_a_run_that_ends": only(number=2),
    "unit/tools/test_bench_command.py::test_the_races_of_a_gpu_run_wherever_webgpu_does": none(
        "test_bench.py times each kind of race"
    ),
    "unit/tools/test_namesakes.py::test_a_namesake_has_the_weights_and_answers_as_recorded": every(3),
    "unit/webgpu/test_wgsl_integers.py::test_convolutions_are_exact": covering(1),
    "unit/webgpu/test_wgsl_matrix.py::test_operands_that_lie_the_other_way": every(4),
    "unit/cuda/test_cuda_text.py::test_large_products_of_float32_are_computed_on_tensor_cores_and_again_where_not_finite": none(
        "test_products_of_small_floats_are_copied_ahead_to_tensor_cores compiles the same template, test_nvrtc_compiles_every_template this one"
    ),
    "unit/cuda/test_cuda_text.py::test_products_of_small_floats_are_copied_ahead_to_tensor_cores": every(12),
    "unit/cuda/test_cuda_text.py::test_products_of_integers_are_computed_on_tensor_cores": every(2),
    "unit/nn/test_nn_pools.py::test_fractional_pools_are_pytorchs_of_given_numbers": one_device,
    "unit/nn/test_nn_reparametrized.py::test_lora_learns_differences_of_low_rank_only": one_device,
    "unit/compiler/test_pooled.py::test_every_shape": one_device,
    "unit/compiler/test_pooled.py::test_answers_are_those_of_both_apart": one_device,
    "unit/ops/test_dtypes.py::test_casts_between_all_types": plain(every(1)),
    "training/test_nonfinite.py::test_a_learner_stops_and_says_where_it_began": plain(every(1)),
    "training/test_onnx_module.py::test_gradients_are_those_of_the_same_layers": one_device,
    "unit/runtime/test_router.py::test_a_network_trains_on_two_devices_as_on_one": plain(every(2)),
    "training/test_step.py::test_a_step_is_what_a_loop_does": one_device,
    "training/test_step.py::test_a_step_evaluates_in_inference_mode_with_its_weights": one_device,
    "training/test_step.py::test_weights_stay_where_they_are": one_device,
    "training/test_step.py::test_half_precision_learns_and_skips_what_overflows": one_device,
    "docs/test_docs_site.py::test_it_is_built_without_an_engine": none(
        "unit/runtime/test_third_party.py says which rooms import which packages"
    ),
    "docs/test_docs_pages.py::test_every_page_fits_a_phone": none(
        "browser/embedding/test_bundle_page.py and browser/demos look at pages of a phone's width; the pages of the documentation share one style"
    ),
    "unit/program/test_shared_weights.py::test_all_steps_give_the_same": one_device,
    "conformance/nodes/test_onnx_control.py::test_a_voice_detector": plain(every(1)),
    "unit/webgpu/test_wgsl_subgroups.py::test_answers": every(2),
    "training/runs/test_terminal.py::test_the_terminal_is_given_back_however_the_program_ends": every(3),
    "structure/test_counts.py::test_all_that_is_counted_can_be_counted": none(
        "test_there_are_none counts what must not be; the other counts are for people"
    ),
    "browser/python/test_pyodide_hosts.py::test_a_device_elsewhere": none(
        "browser/runner/test_remote_links.py has a page's links to a server, unit/remote/ Python's"
    ),
    "docs/test_snippets.py::test_the_page_of_the_start_reads_its_digit": none(
        "test_readme.py types such lines, and embedding/test_npm.py builds a project of them"
    ),
    "unit/tools/test_bench_command.py::test_a_race_that_cannot_run_is_told_and_fails": none(
        "it times a race; test_bench.py times each kind"
    ),
    # costly cases of properties that others test too
    "unit/wasm/test_wasm_native.py::test_any_number_of_modules_come_and_go": none(
        "test_modules_that_nobody_runs_are_let_go, of as many as a store holds before it moves"
    ),
    "browser/python/test_pyodide_314.py": none("test_pyodide_hosts.py runs in the usual version"),
    "browser/demos/test_docs_cells.py::test_cells_are_changed_fail_and_stop": none(
        "test_front_python.py evaluates in the same prompt"
    ),
    "browser/demos/test_docs_cells.py::test_a_site_without_python_has_no_cells": none(
        "test_site.py::test_a_site_without_python_has_its_models_all_the_same builds such a site"
    ),
    "browser/demos/test_classify_page.py::test_camera": none(
        "test_site_tasks.py::test_the_camera_is_followed_until_it_is_stopped"
    ),
    "unit/host/test_host_completions.py::test_a_context_that_shifts_is_read_on_between_other_texts": none(
        "conformance/language/test_generation.py shifts a conversation, test_texts_that_are_made_at_once… makes several at once"
    ),
    "unit/language/test_kept_decoders.py::test_the_second_process_compiles_nothing": only(device_name="wasm"),
    "conformance/language/test_decoders.py::test_keys_and_values_are_held_in_half_the_memory": plain(covering(1)),
    "browser/models/test_tuning_page.py::test_in_a_page_on_webgpu": none("test_in_node takes the same steps"),
    "browser/demos/test_site_tasks.py::test_axe_finds_nothing_with_an_answer": only(name="detect", width=390),
    "browser/demos/test_site_tasks.py::test_faces_of_samples_and_files_are_found": only(width=390),
    "browser/demos/test_site_tasks.py::test_the_camera_is_followed_until_it_is_stopped": only(name="detect"),
    "browser/demos/test_site_tasks.py::test_sounds_are_heard": none(
        "embedding/test_sound_pages.py gives sounds to a bundle's page"
    ),
    "browser/demos/test_site_tasks.py::test_the_microphone_is_heard_until_it_is_stopped": none(
        "unit tests of static/tasks cut the microphone's blocks, and test_the_camera_is_followed_until_it_is_stopped stops a stream"
    ),
    "browser/demos/test_site_tasks.py::test_a_text_is_read_aloud": none(
        "embedding/test_speech_rules.py reads and cuts texts in node"
    ),
    "browser/demos/test_site_tasks.py::test_a_task_runs_without_a_network_after_one_visit": none(
        "demos/test_offline.py has every page without a network"
    ),
    "conformance/language/test_lora.py::test_a_text_is_learned": plain(covering(1)),
    "training/test_cluster.py::test_map_gives_the_outputs_in_order": none(
        "test_workers_train_as_one_process_with_the_whole_batch sends parts and joins outputs in order"
    ),
}
"""Files, or tests of files, below tests/ ↦ which of the cases of each test stay. The row of a test overrides that of its file."""


NIGHTLY: Final[Mapping[str, Rule]] = {
    # nodes in older opsets, and of com.microsoft: their kernels are those of ONNX's node cases and of rows, all of which stay
    "conformance/nodes/test_onnx_libraries.py::test_node_of_a_library": every(3),
    "conformance/nodes/test_onnx_versions.py::test_version": sparing(3),
    "conformance/nodes/test_microsoft.py::test_it_agrees_with_onnxruntime": sparing(3),
    "conformance/nodes/test_microsoft_layers.py::test_it_agrees_with_onnxruntime": sparing(3),
    "conformance/tflite/test_tflite_ops.py::test_an_op_computes_what_the_interpreter_does": sparing(2),
    # rows of libraries, gradients and layers × types × devices, of which `make test` has each pair
    "unit/ops/test_array_libraries.py::test_rows_compute_what_their_references_say": every(3),
    "unit/ops/test_rows_as_onnx.py::test_a_row_leaves_in_every_type": every(2),
    "unit/gradients/test_gradients.py::test_gradient": sparing(3),
    "unit/gradients/test_optim.py::test_each_device_makes_the_same_steps": sparing(3),
    "unit/gradients/test_optim.py::test_both_ways_to_gradients_train_alike": sparing(3),
    "unit/nn/test_nn_onnx.py::test_each_layer_leaves_in_each_opset": covering(1),
    "unit/nn/test_nn_layers.py::test_layers_are_compiled_with_an_open_batch": sparing(3),
    # methods, functions and layers are made of rows
    "unit/tensors/test_array_api.py::test_a_function_gives_what_the_reference_gives": sparing(3),
    "unit/tensors/test_methods.py::test_method": sparing(3),
    "unit/tensors/test_pytorch_functions.py::test_method": sparing(3),
    "unit/tensors/test_pytorch_meanings.py::test_method": sparing(3),
    "unit/tensors/test_sizes.py::test_an_open_dimension_gives_what_its_number_gives": sparing(3),
    "unit/tensors/test_tensor.py::test_operation": sparing(3),
    "training/peers/test_functions.py::test_results_are_those_of_pytorch": sparing(3),
    "training/peers/test_grads.py::test_gradients_of_layers_equal_pytorchs": sparing(3),
    "training/peers/test_losses.py::test_values_and_gradients_are_pytorchs": sparing(3),
    "training/peers/test_modules.py::test_gradients_of_layers_are_pytorchs": sparing(3),
    "training/peers/test_norms.py": sparing(3),
    # networks × devices: the devices' kernels are those of rows
    "conformance/models/test_families.py::test_families": sparing(3),
    "conformance/models/test_onnx_models.py::test_light_model": sparing(3),
    "conformance/models/test_onnx_models.py::test_small_model": sparing(3),
    "conformance/models/test_transformers.py": sparing(3),
    # the same template and kernels for further architectures
    "unit/cuda/test_cuda_text.py::test_nvrtc_compiles_the_kernels_of_real_models": covering(1),
    "unit/cuda/test_cuda_text.py::test_nvrtc_compiles_every_golden_kernel": covering(1),
    # more random changes of the same files, and more texts
    "conformance/language/test_hostile_gguf.py": every(3),
    "conformance/language/test_hostile_tokenizers.py": every(3),
    "conformance/tflite/test_hostile_tflite.py::test_changed_files_are_read_or_refused": every(3),
    "conformance/language/test_tokenizer_families.py::test_ids_and_texts_are_those_of_hugging_face": every(2),
    "conformance/language/test_tokenizer_families.py::test_a_gguf_file_gives_the_same_ids": every(2),
    # in pages: hosts × devices, networks × devices, forms of weights × families, looks of a page
    "browser/python/test_pyodide_hosts.py": covering(1),
    "browser/flow/test_flows.py": every(2),
    "browser/models/test_language_families.py::test_pages_write_what_python_does": covering(1),
    "browser/models/test_stored_weights.py::test_models": every(2),
    "browser/models/test_families_page.py::test_some_families_run_in_a_page_on_webgpu": none(
        "test_every_family_runs_in_a_page, and conformance/models/test_families.py has families on WebGPU"
    ),
    "browser/models/test_transformers_page.py": sparing(4),
    "browser/embedding/test_picture.py::test_photos_become_what_python_makes_of_them": every(2),
}
"""Tests, or files of them, ↦ which of the cases that `make test` leaves out stay in `make full`; `make nightly` runs the others."""


def mark(items: Iterable[pytest.Item]) -> None:
    """Mark `full` what MOVED moves, and `nightly` too what NIGHTLY moves on."""
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        tests.setdefault(item.nodeid.partition("[")[0].removeprefix("tests/"), []).append(item)
    for name, cases in tests.items():
        rule = MOVED.get(name) or MOVED.get(name.partition("::")[0])
        if rule is not None:
            for item in _left_out(rule, cases):
                if not stays(item):
                    item.add_marker(pytest.mark.full)
        rule = NIGHTLY.get(name) or NIGHTLY.get(name.partition("::")[0])
        if rule is not None:
            for item in _left_out(rule, [item for item in cases if item.get_closest_marker("full")]):
                item.add_marker(pytest.mark.nightly)


def _left_out(rule: Rule, cases: Sequence[pytest.Item]) -> list[pytest.Item]:
    kept = set(rule(cases))
    return [item for k, item in enumerate(cases) if k not in kept]
