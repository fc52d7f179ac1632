//! The endpoint of whisper.cpp's server: a form with a file.

use axum::Json;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use serde_json::json;

use super::openai::{Form, respond};
use super::{joined, recognize_upload};
use crate::http::{ApiError, App, client_address};

pub(crate) async fn inference(State(app): State<App>, request: Request) -> Result<Response, ApiError> {
    let client = client_address(request.extensions());
    let form = Form::read(&app, request).await?;
    let shape = form.fields.get("response_format").map_or("json", String::as_str);
    if !["json", "text", "srt", "vtt", "verbose_json"].contains(&shape) {
        return Err(ApiError::bad_field("response_format", shape, "json, text, srt, verbose_json or vtt"));
    }
    let mut session = app.engine.session(client, form.options()?).await?;
    let segments = recognize_upload(&app, &mut session, form.file.clone(), |_| {}).await?;
    Ok(match shape {
        // whisper.cpp ends the text of its JSON with a line break.
        "json" => Json(json!({"text": joined(&segments) + "\n"})).into_response(),
        shape => respond(shape, true, session.accepted_s(), segments),
    })
}
