//! The HTTP client that others are handed.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::header::HOST;
use http::{HeaderMap, HeaderName, HeaderValue, Method};

use super::guard::Guard;
use super::{HttpAnswer, OutgoingFault, Target};

/// A pooled HTTP client. Cheap to clone; clones share the pool.
///
/// A request has exactly the headers that it is given, and `Host`, `User-Agent`,
/// `Content-Length`, and `Accept: */*` where no `Accept` is given. Bodies pass
/// untouched both ways: nothing is compressed or decoded. There is no time-out
/// but the one to connect: whoever drops the future ends the request.
#[derive(Clone)]
pub struct HttpClient(Arc<Inner>);

pub(super) struct Inner {
    pub(super) guard: Guard,
    /// `None` where a client could not be made.
    pub(super) client: Option<reqwest::Client>,
    pub(super) pins: Vec<Pinned>,
}

/// A name that is connected to at one address, outside the guard.
pub(super) struct Pinned {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) address: SocketAddr,
    pub(super) client: reqwest::Client,
}

impl HttpClient {
    pub(super) fn new(inner: Inner) -> Self {
        Self(Arc::new(inner))
    }

    /// Sends a POST. `url` is a text or a [`Target`]; headers are pairs of texts or
    /// of typed names and values.
    ///
    /// # Errors
    /// [`OutgoingFault`]; a status of any kind is an answer.
    pub async fn post<U, N, V>(
        &self,
        url: U,
        headers: impl IntoIterator<Item = (N, V)>,
        body: Bytes,
    ) -> Result<HttpAnswer, OutgoingFault>
    where
        U: TryInto<Target>,
        OutgoingFault: From<U::Error>,
        N: TryInto<HeaderName>,
        V: TryInto<HeaderValue>,
    {
        let headers = header_map(headers)?;
        self.send(Method::POST, url.try_into()?, headers, Some(body))
            .await
    }

    /// Sends a GET.
    ///
    /// # Errors
    /// As [`HttpClient::post`].
    pub async fn get<U, N, V>(
        &self,
        url: U,
        headers: impl IntoIterator<Item = (N, V)>,
    ) -> Result<HttpAnswer, OutgoingFault>
    where
        U: TryInto<Target>,
        OutgoingFault: From<U::Error>,
        N: TryInto<HeaderName>,
        V: TryInto<HeaderValue>,
    {
        let headers = header_map(headers)?;
        self.send(Method::GET, url.try_into()?, headers, None).await
    }

    /// Sends a DELETE.
    ///
    /// # Errors
    /// As [`HttpClient::post`].
    pub async fn delete<U, N, V>(
        &self,
        url: U,
        headers: impl IntoIterator<Item = (N, V)>,
    ) -> Result<HttpAnswer, OutgoingFault>
    where
        U: TryInto<Target>,
        OutgoingFault: From<U::Error>,
        N: TryInto<HeaderName>,
        V: TryInto<HeaderValue>,
    {
        let headers = header_map(headers)?;
        self.send(Method::DELETE, url.try_into()?, headers, None)
            .await
    }

    /// Sends a request with these headers as they are, but for `Host`.
    ///
    /// # Errors
    /// As [`HttpClient::post`].
    pub async fn send(
        &self,
        method: Method,
        target: Target,
        mut headers: HeaderMap,
        body: Option<Bytes>,
    ) -> Result<HttpAnswer, OutgoingFault> {
        let authority = target.authority().ok_or(OutgoingFault::BadUrl)?;
        headers.insert(HOST, authority);
        let (client, target) = self.way_to(target)?;
        let host = target.host().to_owned();
        let mut request = reqwest::Request::new(method, target.into_url());
        *request.headers_mut() = headers;
        *request.body_mut() = body.map(Into::into);
        match client.execute(request).await {
            Ok(response) => Ok(HttpAnswer::new(response)),
            Err(error) => Err(OutgoingFault::of(&error, &host)),
        }
    }

    /// The client for a target. Names are judged when they are resolved; a host
    /// that is an address never meets the resolver and is judged here.
    fn way_to(&self, target: Target) -> Result<(&reqwest::Client, Target), OutgoingFault> {
        let pinned = self
            .0
            .pins
            .iter()
            .find(|pin| pin.port == target.port() && pin.host == target.host());
        if let Some(pin) = pinned {
            return Ok((&pin.client, target.at_port(pin.address.port())));
        }
        if let Some(address) = target.address()
            && !self.0.guard.permits(address)
        {
            return Err(OutgoingFault::Blocked {
                host: target.host().to_owned(),
                address,
            });
        }
        let client = self.0.client.as_ref().ok_or(OutgoingFault::NoClient)?;
        Ok((client, target))
    }
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HttpClient").field(&self.0.guard).finish()
    }
}

fn header_map<N, V>(headers: impl IntoIterator<Item = (N, V)>) -> Result<HeaderMap, OutgoingFault>
where
    N: TryInto<HeaderName>,
    V: TryInto<HeaderValue>,
{
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let name = name.try_into().map_err(|_| OutgoingFault::BadHeader)?;
        let value = value.try_into().map_err(|_| OutgoingFault::BadHeader)?;
        map.append(name, value);
    }
    Ok(map)
}
