//! The body of a response: that of the service inside, or of a denial. Holds the place that the
//! request has under a concurrency limit until it is done.

use std::pin::Pin;
use std::task::{ready, Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use pin_project_lite::pin_project;
use tokio::runtime::Handle;

use crate::client::Weir;
use crate::decision::Reservation;

pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;
pub(crate) type BoxBody = UnsyncBoxBody<Bytes, BoxError>;

pin_project! {
    /// The body of a response that went through a [`WeirLayer`](crate::WeirLayer).
    pub struct WeirBody<B> {
        #[pin]
        content: Content<B>,
        place: Option<Place>,
    }
}

pin_project! {
    #[project = Projected]
    enum Content<B> {
        Inner { #[pin] body: B },
        Text { text: Option<Bytes> },
        Boxed { #[pin] body: BoxBody },
    }
}

impl<B> WeirBody<B> {
    pub(crate) fn inner(body: B, place: Option<Place>) -> Self {
        Self { content: Content::Inner { body }, place }
    }

    pub(crate) fn text(text: Bytes) -> Self {
        let text = (!text.is_empty()).then_some(text);
        Self { content: Content::Text { text }, place: None }
    }

    pub(crate) fn boxed(body: BoxBody) -> Self {
        Self { content: Content::Boxed { body }, place: None }
    }
}

impl<B> Body for WeirBody<B>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.project();
        let frame = match this.content.project() {
            Projected::Inner { body } => {
                ready!(body.poll_frame(cx)).map(|frame| frame.map_err(Into::into))
            }
            Projected::Text { text } => text.take().map(|text| Ok(Frame::data(text))),
            Projected::Boxed { body } => ready!(body.poll_frame(cx)),
        };
        if frame.is_none() {
            this.place.take();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Inner { body } => body.is_end_stream(),
            Content::Text { text } => text.is_none(),
            Content::Boxed { body } => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Inner { body } => body.size_hint(),
            Content::Text { text } => {
                SizeHint::with_exact(text.as_ref().map_or(0, |text| text.len() as u64))
            }
            Content::Boxed { body } => body.size_hint(),
        }
    }
}

/// A place under a concurrency limit, given back when this is dropped: the response is done, the
/// client has gone, or the handler has panicked.
pub(crate) struct Place {
    weir: Weir,
    reservation: Option<Reservation>,
    /// Bodies may be dropped anywhere.
    runtime: Option<Handle>,
}

impl Place {
    pub(crate) fn new(weir: &Weir, reservation: Reservation) -> Self {
        let runtime = Handle::try_current().ok();
        Self { weir: weir.clone(), reservation: Some(reservation), runtime }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let runtime = Handle::try_current().ok().or_else(|| self.runtime.take());
        let (Some(reservation), Some(runtime)) = (self.reservation.take(), runtime) else {
            return;
        };
        let weir = self.weir.clone();
        runtime.spawn(async move {
            // If that fails, the lease ends by itself.
            let _ = weir.release(&reservation).await;
        });
    }
}
