//! JSON-RPC 1.0 messages as defined by RFC 7047, 4.

use serde_json::{Map, Value, json};

use crate::{Malformed, excerpt};

/// A message.
#[derive(Clone, Debug, PartialEq)]
pub enum RpcMessage {
    /// A request, which requires a reply.
    Request {
        /// The identifier of the reply.
        id: Value,
        /// The method.
        method: String,
        /// Its parameters.
        params: Vec<Value>,
    },
    /// A notification without a reply.
    Notification {
        /// The method.
        method: String,
        /// Its parameters.
        params: Vec<Value>,
    },
    /// The reply to a request.
    Reply {
        /// The identifier of the request.
        id: Value,
        /// The result.
        result: Value,
    },
    /// An error reply.
    Failure {
        /// The identifier of the request.
        id: Value,
        /// The error.
        error: Value,
    },
}

impl RpcMessage {
    /// Parses a message.
    ///
    /// # Errors
    /// The value is not a message.
    pub fn from_json(value: Value) -> Result<Self, Malformed> {
        let malformed = || Malformed(format!("not a JSON-RPC message: {}", excerpt(&value)));
        let parts = value.as_object().ok_or_else(malformed)?;
        let part = |name: &str| parts.get(name).cloned().unwrap_or(Value::Null);
        let id = part("id");
        if let Some(method) = parts.get("method") {
            let (Some(method), Value::Array(params)) = (method.as_str(), part("params")) else {
                return Err(malformed());
            };
            let method = method.to_owned();
            return Ok(match id {
                Value::Null => Self::Notification { method, params },
                id => Self::Request { id, method, params },
            });
        }
        if id.is_null() {
            return Err(malformed());
        }
        match part("error") {
            Value::Null if !parts.contains_key("result") => Err(malformed()),
            Value::Null => Ok(Self::Reply {
                result: part("result"),
                id,
            }),
            // ovsdb-server omits the result of a method that it lacks.
            error => Ok(Self::Failure { id, error }),
        }
    }

    /// Converts the message to JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let request = |method: &str, params: &[Value], id: &Value| {
            let mut parts = Map::new();
            parts.insert("method".to_owned(), json!(method));
            parts.insert("params".to_owned(), json!(params));
            parts.insert("id".to_owned(), id.clone());
            Value::Object(parts)
        };
        match self {
            Self::Request { id, method, params } => request(method, params, id),
            Self::Notification { method, params } => request(method, params, &Value::Null),
            Self::Reply { id, result } => json!({"id": id, "result": result, "error": null}),
            Self::Failure { id, error } => json!({"id": id, "result": null, "error": error}),
        }
    }
}
