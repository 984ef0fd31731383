-- Gives REST callers the API's own statuses and error bodies; gRPC and gRPC-Web callers keep what the api sent.
--
-- What the api may say about the REST side of an answer (docs/gateway.md):
--   x-http-code   the HTTP status: 201 or 204 in the initial metadata of a success, 4xx or 5xx in the trailing metadata of an error
--   x-error-body  the finished JSON of an error, ASCII, in the trailing metadata
--   retry-after   seconds, in the trailing metadata of a 429 or 503
-- An error without them (raised by gRPC itself, say) is told by its gRPC status alone.

local SCOPE = "taskexecutor.gateway"

local INTERNAL = {status = 500, code = "INTERNAL_ERROR", message = "Something went wrong on our side; the request id finds it in the logs."}
local CONFLICT = {status = 409, code = "CONFLICT"}
local GOING_AWAY = {status = 503, code = "UNAVAILABLE", message = "The service is not available; try again."}
local TOO_LARGE = {status = 413, code = "PAYLOAD_TOO_LARGE", message = "The request is too large."}

-- By google.rpc.Code; what is not here is INTERNAL, whose message is fixed so that nothing leaks.
local BY_GRPC_STATUS = {
  [1] = GOING_AWAY, -- a server that is stopping says CANCELLED, see upstream.py
  [3] = {status = 400, code = "INVALID_REQUEST"},
  [4] = {status = 504, code = "DEADLINE_EXCEEDED"},
  [5] = {status = 404, code = "NOT_FOUND"},
  [6] = CONFLICT,
  [7] = {status = 403, code = "FORBIDDEN"},
  [8] = {status = 429, code = "RATE_LIMITED"},
  [9] = CONFLICT,
  [10] = CONFLICT,
  [12] = {status = 501, code = "UNIMPLEMENTED"},
  [14] = {status = 503, code = "UNAVAILABLE"},
  [16] = {status = 401, code = "UNAUTHORIZED"},
}

local NOT_FOR_REST = {"grpc-status", "grpc-message", "grpc-status-details-bin", "grpc-encoding", "grpc-accept-encoding"}

-- A header as a number; nil where there is none.
local function number_in(headers, name)
  local text = headers:get(name)
  return text and tonumber(text)
end

local function is_safe(id)
  return id ~= nil and #id <= 128 and id:find("^[%w._:-]+$") ~= nil
end

-- Leaves one id on the request, for the api, the answer's header and its body.
local function settle_request_id(headers)
  local id, fresh = headers:get("x-request-id"), headers:get("x-fresh-request-id")
  headers:remove("x-fresh-request-id")
  if is_safe(id) then
    return id
  end
  headers:replace("x-request-id", fresh)
  return fresh
end

local function is_grpc(headers)
  local content_type = headers:get("content-type") or ""
  return content_type:sub(1, 16) == "application/grpc"
end

-- What HTTP allows in a header and gRPC does not: the api's side of the connection would answer INTERNAL to the whole call.
-- Headers that gRPC itself reads (grpc-timeout, grpc-encoding) mean nothing in a REST call.
local function is_foreign_to_grpc(name)
  return name:find("[^%w:_.-]") ~= nil or name:find("^grpc%-") ~= nil or name:find("%-bin$") ~= nil
end

local function remove_foreign(headers)
  local foreign = {}
  for name in pairs(headers) do
    if is_foreign_to_grpc(name) then
      foreign[#foreign + 1] = name
    end
  end
  for _, name in ipairs(foreign) do
    headers:remove(name)
  end
end

function envoy_on_request(handle)
  local headers = handle:headers()
  local request_id = settle_request_id(headers)
  if not is_grpc(headers) then
    remove_foreign(headers)
  end
  -- HEAD is served nowhere; Envoy's own answer to it is finished, and must not get a body.
  if not is_grpc(headers) and headers:get(":method") ~= "HEAD" then
    handle:streamInfo():dynamicMetadata():set(SCOPE, "rest_request_id", request_id)
  end
end

-- The id of a REST request; nil for gRPC callers, and where Envoy refused the request before it came here.
local function rest_request_id(handle)
  local noted = handle:streamInfo():dynamicMetadata():get(SCOPE)
  return noted and noted["rest_request_id"]
end

-- Takes the two keys out of the answer: to gRPC callers they are noise that repeats the status details.
local function take_hints(headers)
  local status, body = number_in(headers, "x-http-code"), headers:get("x-error-body")
  headers:remove("x-http-code")
  headers:remove("x-error-body")
  return status, body
end

local function empty(handle)
  handle:body(true):setBytes("")
  local headers = handle:headers()
  headers:remove("content-length")
  headers:remove("content-type")
end

local function shape_success(handle, status)
  if status == nil or status >= 400 then
    return
  end
  handle:headers():replace(":status", tostring(status))
  if status == 204 then
    empty(handle)
  end
end

-- What the transcoder wrote for an error: a google.rpc.Status; its message is JSON text already.
local function read_rpc_status(text)
  local number, message = text:match('^{"code":(%d+),"message":"(.*)","details":%[')
  return number and tonumber(number), message
end

local function fallback(number, message)
  if number == 8 and message and message:find("message larger than max", 1, true) then
    return TOO_LARGE
  end
  return BY_GRPC_STATUS[number] or INTERNAL
end

local function error_body(kind, message, request_id)
  return string.format('{"error":{"code":"%s","message":"%s","request_id":"%s"}}', kind.code, kind.message or message or "", request_id)
end

-- HTTP wants whole seconds.
local function round_retry_after(headers, status)
  local seconds = number_in(headers, "retry-after")
  if seconds then
    headers:replace("retry-after", tostring(math.max(1, math.ceil(seconds))))
  elseif status == 503 then
    headers:replace("retry-after", "1")
  end
end

local function shape_error(handle, status, body, request_id)
  local grpc_status = number_in(handle:headers(), "grpc-status")
  -- Reading the body may suspend this script, after which earlier header objects are dead: they are fetched again.
  local buffer = handle:body(true)
  if status == nil or body == nil then
    local text = buffer:getBytes(0, buffer:length())
    if text:sub(1, 9) == '{"error":' then
      return -- Envoy's own, see local_replies.py
    end
    local number, message = read_rpc_status(text)
    local kind = fallback(number or grpc_status, message)
    status, body = kind.status, error_body(kind, message, request_id)
  end
  local length = buffer:setBytes(body)
  local headers = handle:headers()
  headers:replace(":status", tostring(status))
  headers:replace("content-type", "application/json")
  headers:replace("content-length", tostring(length))
  round_retry_after(headers, status)
end

function envoy_on_response(handle)
  local headers = handle:headers()
  local status, body = take_hints(headers)
  local request_id = rest_request_id(handle)
  if request_id == nil then
    return
  end
  local failed = number_in(headers, ":status") >= 400
  if failed then
    shape_error(handle, status, body, request_id)
  else
    shape_success(handle, status)
  end
  headers = handle:headers()
  for _, name in ipairs(NOT_FOR_REST) do
    headers:remove(name)
  end
end
