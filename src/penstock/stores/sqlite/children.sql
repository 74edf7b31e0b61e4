-- What commits send to other executions.

-- select_child --
-- What decides about a start or a control request. Argument: id. Result: n, state, last control request.
SELECT n, state, control_request FROM executions WHERE id = ?

-- request_control --
-- Records a control request. Arguments: control request, n.
UPDATE executions SET control_request = ? WHERE n = ?
