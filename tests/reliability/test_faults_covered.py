"""Every fault that must be survived has tests that say so; this table finds them, and fails when one has gone."""

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

FRAMING = "tests/adapters/stdio/test_framing.py"
TRANSPORT = "tests/contracts/test_transport.py"
DISPATCH = "tests/server/test_dispatch.py"
JSONRPC = "tests/server/test_jsonrpc.py"
FAULTS = "tests/e2e/test_faults_e2e.py"
PROCESS = "tests/e2e/test_process.py"
STDIO = "tests/e2e/test_stdio.py"
CONFIGURED = "tests/e2e/test_configuration_e2e.py"
CONFIG_FILE = "tests/config/test_file.py"
MATRIX = "tests/reliability/test_fault_matrix.py"
HOSTILE = "tests/reliability/test_hostile_replies.py"
SECRETS = "tests/reliability/test_secrets.py"
DEPARTURES = "tests/reliability/test_departures.py"
SCARCITY = "tests/e2e/test_scarcity.py"
FLOODS = "tests/reliability/test_floods.py"
CONNECTIONS = "tests/adapters/openai/test_gateway_connections.py"

BACKGROUND = "tests/adapters/openai/test_background.py"
ABANDONED = "tests/adapters/openai/test_abandoned.py"
RESEARCH = "tests/e2e/test_research_e2e.py"
TASKS = "tests/e2e/test_tasks_e2e.py"
HTTP = "tests/e2e/test_http_e2e.py"
HTTP_ACCESS = "tests/adapters/http/test_access.py"
HTTP_SERVING = "tests/adapters/http/test_serving.py"

# Fault number -> file -> tests, without their `test_`.
COVERED: dict[int, dict[str, list[str]]] = {
    1: {
        FAULTS: ["a_line_that_is_not_json_is_a_parse_error"],
        JSONRPC: ["a_body_that_is_not_json_is_a_parse_error_without_an_id"],
    },
    2: {
        FRAMING: ["the_same_bytes_give_the_same_outcomes_however_they_are_cut"],
        FAULTS: [
            "blank_lines_and_carriage_returns_between_messages_are_nothing",
            "a_line_that_is_not_json_is_a_parse_error",
        ],
    },
    3: {STDIO: ["a_byte_order_mark_before_the_first_message_is_skipped_and_none_is_sent"]},
    4: {
        STDIO: ["input_byte_by_byte_is_answered_like_input_in_one_piece"],
        FRAMING: ["any_bytes_in_any_chunking_give_the_same_outcomes_and_the_same_mode"],
    },
    5: {STDIO: ["a_thousand_messages_in_one_write_get_a_thousand_replies"]},
    6: {
        FAULTS: ["a_message_of_exactly_the_limit_is_taken_and_one_byte_more_is_not"],
        PROCESS: ["an_endless_line_is_one_error_and_takes_no_memory"],
        FRAMING: ["what_is_too_long_is_skipped_in_bounded_memory"],
    },
    7: {
        FAULTS: ["a_header_without_a_usable_length_is_one_error"],
        FRAMING: ["a_bad_length_is_one_fault_and_the_next_message_is_found"],
    },
    8: {
        FAULTS: ["a_header_without_a_usable_length_is_one_error", "a_header_block_that_never_ends_is_one_error"],
        FRAMING: ["a_header_block_has_8_kib_and_no_byte_more", "a_header_block_has_32_lines_and_not_one_more"],
    },
    9: {
        STDIO: ["a_message_that_the_end_cuts_off_never_runs", "a_last_line_without_newline_is_answered"],
        FRAMING: ["the_end_may_come_anywhere_and_a_part_is_never_a_message"],
    },
    10: {
        STDIO: ["replies_turn_into_lines_with_the_first_line_and_stay_so"],
        FRAMING: ["replies_are_framed_until_the_first_line_of_json_and_are_lines_ever_after"],
    },
    11: {
        FAULTS: [
            "a_line_that_is_not_json_is_a_parse_error",
            "json_that_is_no_request_is_refused",
            "a_lone_surrogate_in_a_question_is_answered",
        ],
        JSONRPC: ["a_key_twice_is_refused_with_the_id_if_there_is_exactly_one"],
    },
    12: {
        FAULTS: ["json_that_is_no_request_is_refused", "what_asks_for_no_reply_gets_none"],
        JSONRPC: [
            "a_key_that_only_looks_like_id_is_not_taken_for_it",
            "a_key_that_only_looks_like_method_is_not_taken_for_it",
        ],
    },
    13: {
        FAULTS: ["json_that_is_no_request_is_refused"],
        DISPATCH: ["a_number_and_its_digits_as_text_are_two_calls"],
        JSONRPC: ["an_id_that_is_no_text_or_whole_number_is_refused_without_it"],
    },
    14: {
        FAULTS: [
            "the_id_of_a_call_in_flight_is_refused_and_the_call_unharmed",
            "json_that_is_no_request_is_refused",
        ],
        DISPATCH: ["an_id_in_flight_is_refused_for_the_second_and_the_first_is_unharmed"],
    },
    15: {
        FAULTS: ["cancelling_what_is_not_in_flight_changes_nothing"],
        DISPATCH: ["cancelling_twice_or_after_the_reply_does_nothing"],
    },
    16: {
        FAULTS: ["a_cancellation_that_races_the_reply_never_brings_two"],
        DISPATCH: ["a_cancellation_racing_the_completion_never_makes_two_replies_or_a_late_one"],
    },
    17: {
        FAULTS: ["line_ends_and_quotes_in_an_answer_stay_inside_one_message"],
        JSONRPC: ["no_line_end_gets_into_a_message_raw"],
    },
    18: {
        PROCESS: [
            "a_client_that_closes_stdout_ends_an_idle_server",
            "a_client_that_closes_stdout_ends_a_server_with_a_call_in_flight",
            "descriptors_that_are_closed_at_the_start_are_no_error",
            "a_stderr_that_takes_nothing_leaves_the_wire_clean",
            "a_stderr_that_is_never_read_holds_up_no_call",
            "input_from_a_file_and_output_to_a_file_are_served",
            "the_null_device_is_an_input_that_has_ended",
        ],
        DEPARTURES: ["a_client_that_ends_the_input_and_then_goes_does_not_leave_the_server_waiting"],
    },
    19: {PROCESS: ["a_signal_ends_an_idle_server", "a_signal_aborts_what_is_in_flight"]},
    20: {
        PROCESS: ["sixty_long_replies_wait_for_a_client_that_stops_reading"],
        TRANSPORT: ["a_client_that_does_not_read_is_not_heard_until_it_does"],
    },
    21: {PROCESS: ["what_a_library_prints_never_reaches_the_wire"]},
    22: {PROCESS: ["a_debug_file_that_cannot_be_written_is_a_warning"]},
    23: {
        FAULTS: ["a_thousand_calls_in_flight_get_one_reply_each_and_a_ping_is_not_kept_waiting"],
        DISPATCH: ["ping_and_list_are_answered_at_once_while_a_thousand_calls_are_in_flight"],
    },
    24: {
        MATRIX: [
            "trouble_is_tried_again_within_bounds",
            "trouble_that_passes_is_an_answer",
            "a_connection_that_cannot_be_opened_is_tried_again",
            "a_connection_that_breaks_later_is_not_tried_again",
            "a_cancellation_ends_the_waiting_for_a_retry",
        ],
        FAULTS: ["a_cancellation_ends_the_waiting_for_a_retry_and_for_a_place"],
    },
    25: {
        MATRIX: [
            "a_body_that_is_no_response_is_one_failure",
            "a_body_that_is_no_response_is_one_failure_where_no_stream_is_asked_for",
            "every_fault_at_once_leaves_none_waiting",
        ],
        HOSTILE: ["a_small_body_that_unfolds_into_a_huge_one_is_one_failure"],
        FAULTS: ["dripping_and_silence_end_with_the_timeout"],
    },
    26: {
        MATRIX: ["a_stream_is_the_whole_answer_once_or_one_failure"],
        HOSTILE: ["strange_facts_of_an_error_in_a_stream_never_cost_the_client_its_reply"],
        FAULTS: ["a_stream_that_completes_twice_is_answered_once"],
    },
    27: {
        MATRIX: ["a_refusal_is_one_failure_that_says_what_to_do", "a_conversation_that_is_lost_says_which_way"],
        HOSTILE: ["an_error_in_a_strange_charset_keeps_its_meaning"],
    },
    28: {
        MATRIX: [
            "a_redirect_is_refused_and_the_question_does_not_leave_with_it",
            "a_key_that_no_header_carries_is_a_failure_without_an_attempt",
        ],
        SECRETS: [
            "no_secret_is_in_any_error_log_line_or_debug_file",
            "no_secret_is_in_what_a_command_prints",
            "no_secret_of_an_exception_or_its_causes_comes_out",
            "no_secret_is_in_the_traceback_of_a_crash",
        ],
    },
    29: {
        CONFIGURED: ["a_file_that_cannot_be_used_stops_the_start", "a_directory_is_no_configuration_file"],
        CONFIG_FILE: ["a_file_that_cannot_be_opened_is_a_problem", "an_api_key_in_the_file_is_named_and_never_shown"],
        SECRETS: ["no_secret_is_in_a_complaint_about_the_configuration"],
    },
    30: {
        CONFIGURED: ["a_variable_that_cannot_be_used_stops_the_start"],
        SECRETS: ["no_secret_is_in_a_complaint_about_a_variable"],
    },
    41: {
        SCARCITY: [
            "few_descriptors_and_many_calls",
            "no_time_zone_database",
            "imports_that_fail",
            "too_little_memory_is_said_at_the_start",
        ]
    },
    42: {FLOODS: ["the_event_loop_is_never_busy_for_long", "a_flooded_server_answers_pings_and_ends_when_it_shall"]},
    43: {
        CONNECTIONS: [
            "a_stream_is_read_to_its_end_so_that_its_connection_is_used_again",
            "a_stream_that_does_not_end_well_costs_the_connection_and_not_the_answer",
            "an_answer_that_comes_unasked_answers_nothing",
        ]
    },
    44: {
        BACKGROUND: [
            "a_connection_cut_at_any_event_costs_nothing",
            "a_hundred_cuts_at_random_cost_nothing",
            "an_api_in_trouble_is_asked_again_for_the_rest",
            "a_cut_before_the_id_is_known_is_one_failure_that_says_so",
            "what_can_no_longer_be_streamed_is_looked_at",
            "a_response_that_takes_too_long_goes_on_and_can_be_fetched",
        ],
        ABANDONED: [
            "a_call_that_is_cancelled_at_any_stage_leaves_nothing_running",
            "a_call_that_is_cancelled_before_its_id_is_known_is_cancelled_as_soon_as_it_is",
            "an_api_in_trouble_is_asked_again_to_cancel",
        ],
        RESEARCH: [
            "research_survives_a_cut_connection_and_is_asked_once",
            "a_signal_cancels_research_at_the_api",
            "a_client_that_goes_leaves_no_research_running",
        ],
        TASKS: [
            "a_task_survives_the_death_of_the_server",
            "a_research_of_another_process_can_be_fetched_and_failures_are_clear",
        ],
    },
    58: {
        HTTP_SERVING: [
            "a_client_that_does_not_say_what_it_wants_is_sent_away_and_others_are_served",
            "a_second_request_that_is_never_finished_is_sent_away_too",
        ],
        HTTP: [
            "half_a_body_and_a_client_that_leaves_harm_nobody",
            "what_is_no_message_is_refused_with_the_right_status",
            "garbage_on_the_wire_costs_its_connection_and_nothing_else",
            "another_host_or_origin_is_forbidden",
            "a_token_in_the_address_is_refused",
            "without_a_token_that_counts_nobody_is_let_in",
        ],
        HTTP_ACCESS: ["a_token_that_does_not_count_is_refused"],
    },
}

GUARD = "tests/guard"
GUARD_BYTES = f"{GUARD}/test_guard_bytes.py"
GUARD_PROCESS = f"{GUARD}/test_guard_process.py"
GUARD_FAULTS = f"{GUARD}/test_guard_faults.py"
GUARD_ASKS = f"{GUARD}/test_guard_e2e.py"
GUARD_CALLS = f"{GUARD}/test_call_keeper.py"
GUARD_PARTS = f"{GUARD}/test_parts.py"
GUARD_RELAY = f"{GUARD}/test_relay.py"
GUARD_MESSAGES = f"{GUARD}/test_messages.py"
GUARD_SWAPS = f"{GUARD}/test_swapped_definitions.py"
GUARD_PAIR = f"{GUARD}/test_two_guards_any_order.py"
GUARD_BUDGET = f"{GUARD}/test_shared_budget.py"

# The same for the guard, towards both sides.
GUARDED: dict[int, dict[str, list[str]]] = {
    1: {
        GUARD_BYTES: [
            "what_is_no_json_is_a_parse_error_for_the_client",
            "what_the_server_writes_that_is_no_message_goes_nowhere",
        ]
    },
    2: {
        GUARD_BYTES: ["blank_lines_line_ends_and_a_byte_order_mark_are_no_part_of_a_message"],
        GUARD_ASKS: ["a_message_hidden_behind_a_bare_cr_stays_one_message"],
        GUARD_MESSAGES: ["a_line_end_between_the_parts_is_written_anew"],
    },
    3: {GUARD_BYTES: ["blank_lines_line_ends_and_a_byte_order_mark_are_no_part_of_a_message"]},
    4: {GUARD_BYTES: ["input_byte_by_byte_passes_like_input_in_one_piece"]},
    5: {GUARD_FAULTS: ["a_thousand_calls_at_once_are_answered_once_each"]},
    6: {GUARD_BYTES: ["a_message_that_is_too_long_is_one_error_for_either_side_and_takes_bounded_memory"]},
    7: {
        GUARD_BYTES: [
            "what_is_no_message_is_an_invalid_request_for_the_client",
            "what_the_server_writes_that_is_no_message_goes_nowhere",
        ]
    },
    8: {
        GUARD_BYTES: [
            "what_is_no_message_is_an_invalid_request_for_the_client",
            "what_the_server_writes_that_is_no_message_goes_nowhere",
        ]
    },
    9: {GUARD_BYTES: ["a_message_that_the_end_cuts_off_never_runs_and_a_last_line_needs_no_newline"]},
    11: {
        GUARD_BYTES: [
            "what_is_no_json_is_a_parse_error_for_the_client",
            "what_the_server_writes_that_is_no_message_goes_nowhere",
            "a_lone_surrogate_passes",
        ],
        GUARD_FAULTS: ["a_reply_that_can_be_read_in_two_ways_becomes_an_error"],
    },
    12: {
        GUARD_MESSAGES: ["what_could_be_read_in_two_ways_is_unfit"],
        GUARD_CALLS: ["arguments_that_two_servers_read_differently_are_refused"],
    },
    13: {
        GUARD_BYTES: [
            "what_is_no_message_is_an_invalid_request_for_the_client",
            "a_number_and_its_digits_as_text_are_two_calls",
        ]
    },
    14: {
        GUARD_FAULTS: ["an_id_in_flight_is_refused_and_the_first_call_unharmed"],
        GUARD_RELAY: ["an_id_in_flight_is_refused_on_both_sides"],
    },
    15: {
        GUARD_FAULTS: ["a_cancelled_call_is_told_to_the_server_and_never_answered"],
        GUARD_RELAY: ["cancelling_a_held_call_tells_the_server_nothing", "a_server_takes_its_own_request_back"],
    },
    16: {
        GUARD_BYTES: ["a_cancellation_that_races_the_reply_never_brings_two"],
        GUARD_CALLS: [
            "a_call_that_is_taken_back_while_its_start_is_written_has_an_outcome",
            "a_call_that_is_taken_back_while_its_request_is_stored_leaves_none_behind",
        ],
        GUARD_RELAY: ["whatever_both_sides_send_only_messages_pass_and_no_reply_twice"],
    },
    17: {GUARD_BYTES: ["line_ends_inside_texts_of_the_server_stay_inside_one_message"]},
    18: {
        GUARD_PROCESS: [
            "a_client_that_closes_stdout_ends_guard_and_server",
            "descriptors_that_are_closed_at_the_start_are_no_error",
            "a_stderr_that_takes_nothing_leaves_the_wire_clean",
            "input_from_a_file_and_output_to_a_file_are_served",
        ],
        GUARD_FAULTS: [
            "a_server_that_reads_nothing_is_ended_when_the_client_closes_its_input",
            "a_server_that_lists_nothing_is_ended_when_the_client_closes_its_input",
            "stderr_that_nobody_reads_holds_nothing_up",
        ],
    },
    19: {
        GUARD_PROCESS: ["a_signal_ends_an_idle_guard_and_its_server"],
        GUARD_FAULTS: ["a_signal_ends_the_server_too"],
    },
    20: {
        GUARD_PROCESS: ["sixty_long_replies_wait_for_a_client_that_stops_reading"],
        GUARD_RELAY: ["a_client_that_does_not_read_holds_the_server_up_and_loses_nothing"],
    },
    21: {GUARD_PROCESS: ["what_a_library_prints_never_reaches_the_wire"]},
    22: {
        GUARD_FAULTS: [
            "a_store_that_cannot_be_written_refuses_calls",
            "without_the_store_no_call_runs",
        ],
        GUARD_PARTS: ["what_nobody_waits_for_is_kept_until_the_store_is_back"],
    },
    23: {GUARD_PROCESS: ["a_thousand_calls_in_flight_keep_no_ping_waiting"]},
    29: {
        GUARD_ASKS: [
            "a_policy_that_cannot_be_used_ends_the_guard",
            "a_changed_policy_counts_from_the_next_call_on_and_a_broken_one_does_not",
        ],
    },
    30: {GUARD_PROCESS: ["a_setting_that_makes_no_sense_ends_the_guard_with_what_is_wrong"]},
    45: {GUARD_PARTS: ["a_name_or_a_reason_cannot_pass_for_a_line_of_the_question"]},
    46: {
        GUARD_PARTS: ["the_question_shows_exactly_what_is_sent_and_nothing_invisible"],
        GUARD_CALLS: ["secrets_are_shown_as_what_they_are_and_sent_as_they_are"],
    },
    48: {GUARD_CALLS: ["a_yes_that_cannot_be_recorded_does_not_count", "without_a_record_nothing_runs"]},
    51: {
        GUARD_SWAPS: [
            "one_definition_for_the_client_and_another_for_the_guard_is_asked_about",
            "a_change_that_another_guard_has_refused_does_not_run_here",
            "parallel_calls_with_a_budget_never_pin_what_was_refused",
        ],
        GUARD_PAIR: ["no_order_of_events_runs_a_definition_that_was_not_let_through"],
    },
    56: {
        GUARD_BUDGET: [
            "four_guards_on_one_file_run_exactly_the_budget",
            "two_guards_on_postgres_run_exactly_the_budget",
        ]
    },
}

# There is no API behind the guard, and it writes lines only. The log of 47 and the schemas of 49 are the agents' own.
NOT_THE_GUARDS = {10, 24, 25, 26, 27, 28}


@cache
def names_in(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return frozenset(function.name for function in functions)


def test_every_fault_of_the_server_is_in_the_table() -> None:
    assert sorted(COVERED) == [*range(1, 31), 41, 42, 43, 44, 58]
    assert all(names for files in COVERED.values() for names in files.values())


def test_every_fault_that_fits_the_guard_is_in_its_table() -> None:
    assert {*range(1, 31)} - GUARDED.keys() == NOT_THE_GUARDS
    assert all(names for files in GUARDED.values() for names in files.values())


def test_the_tests_of_every_fault_exist() -> None:
    files = [entry for table in (COVERED, GUARDED) for fault in table.values() for entry in fault.items()]
    listed = [(path, f"test_{name}") for path, names in files for name in names]
    assert [(path, name) for path, name in listed if name not in names_in(path)] == []
