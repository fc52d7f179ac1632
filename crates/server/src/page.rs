//! The page at `/` and the description of the interfaces at `/docs`, embedded in the program.

use axum::extract::Path;
use axum::http::header;
use axum::response::{IntoResponse, Response};

use crate::http::ApiError;

/// Nothing on the page may come from elsewhere.
const POLICY: &str = "default-src 'self'; img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'";

pub(crate) fn index() -> Response {
    html(include_str!("page/index.html"))
}

pub(crate) async fn docs() -> Response {
    html(include_str!("page/docs.html"))
}

pub(crate) async fn openapi() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], include_str!("page/openapi.json")).into_response()
}

/// The style sheet and the scripts of the page.
pub(crate) async fn file(Path(name): Path<String>) -> Response {
    let (kind, text) = match name.as_str() {
        "style.css" => ("text/css", include_str!("page/style.css")),
        "app.js" => ("text/javascript", include_str!("page/app.js")),
        "connection.js" => ("text/javascript", include_str!("page/connection.js")),
        "pictures.js" => ("text/javascript", include_str!("page/pictures.js")),
        "worklet.js" => ("text/javascript", include_str!("page/worklet.js")),
        _ => return ApiError::not_found().into_response(),
    };
    ([(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, "no-cache")], text).into_response()
}

fn html(text: &'static str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, text).into_response()
}
