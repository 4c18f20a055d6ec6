//! The provider's token endpoint and userinfo: code for tokens, refresh token for
//! news of the person.

use bytes::Bytes;
use oauth2::basic::{
    BasicErrorResponse, BasicErrorResponseType, BasicRevocationErrorResponse,
    BasicTokenIntrospectionResponse, BasicTokenType,
};
use oauth2::{
    AuthType, AuthUrl, AuthorizationCode, Client, ClientId, ClientSecret, EndpointNotSet,
    EndpointSet, ExtraTokenFields, HttpRequest, HttpResponse, PkceCodeVerifier, RedirectUrl,
    RefreshToken, RequestTokenError, StandardRevocableToken, StandardTokenResponse,
    TokenResponse as _, TokenUrl,
};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::metadata::Metadata;
use super::{Federation, FederationFault, Secrets, TIMEOUT};
use crate::config::{IdentityProvider, Login, read_secret_file};
use crate::jose::Claims;
use crate::outgoing::{HttpClient, OutgoingFault, Reach, Target};
use crate::secret::Secret;

/// Longest answer that is read.
const MAX_ANSWER: usize = 512 * 1024;

/// What a provider gave for a code or a refresh token.
#[derive(Debug)]
pub struct Tokens {
    /// The ID token; not verified yet. Some providers send none at a refresh.
    pub id_token: Option<String>,
    /// For the provider's own userinfo endpoint, nothing else.
    pub access_token: Secret<String>,
    /// With this the provider can be asked later whether the person is still there.
    pub refresh_token: Option<Secret<String>>,
}

/// Why a provider gave no news of a person.
#[derive(Debug, Error)]
pub enum RenewFault {
    /// It does not know the person any more, or took its word back.
    #[error("the provider no longer vouches for the person")]
    Gone,
    /// It cannot be asked at the moment, or does not understand us.
    #[error(transparent)]
    Away(#[from] FederationFault),
}

/// The fields of a token answer that `oauth2` does not know.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct IdTokenFields {
    #[serde(default)]
    id_token: Option<String>,
}

impl ExtraTokenFields for IdTokenFields {}

type Answer = StandardTokenResponse<IdTokenFields, BasicTokenType>;
type ProviderClient = Client<
    BasicErrorResponse,
    Answer,
    BasicTokenIntrospectionResponse,
    StandardRevocableToken,
    BasicRevocationErrorResponse,
    EndpointSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointSet,
>;

/// Us, as the provider knows us.
pub(super) fn client(
    metadata: &Metadata,
    login: &Login,
    redirect_uri: &str,
    secret: Option<&Secret<String>>,
) -> Result<ProviderClient, FederationFault> {
    const NO_URL: FederationFault = FederationFault::Metadata("names an endpoint that is no URL");
    let authorization =
        AuthUrl::new(metadata.authorization_endpoint.clone()).map_err(|_| NO_URL)?;
    let token = TokenUrl::new(metadata.token_endpoint.clone()).map_err(|_| NO_URL)?;
    let redirect = RedirectUrl::new(redirect_uri.to_owned()).map_err(|_| NO_URL)?;
    let auth_type = if metadata.secret_in_body || secret.is_none() {
        AuthType::RequestBody
    } else {
        AuthType::BasicAuth
    };
    let client = Client::new(ClientId::new(login.client_id.clone()))
        .set_auth_uri(authorization)
        .set_token_uri(token)
        .set_redirect_uri(redirect)
        .set_auth_type(auth_type);
    Ok(match secret {
        Some(secret) => client.set_client_secret(ClientSecret::new(secret.expose().clone())),
        None => client,
    })
}

impl Federation {
    /// The tokens that the provider gives for a code.
    ///
    /// # Errors
    /// [`FederationFault`]
    pub async fn exchange(
        &self,
        provider: &IdentityProvider,
        login: &Login,
        redirect_uri: &str,
        code: String,
        secrets: &Secrets,
    ) -> Result<Tokens, FederationFault> {
        let metadata = self.metadata(provider).await?;
        let secret = secret_of(login)?;
        let client = client(&metadata, login, redirect_uri, secret.as_ref())?;
        let http = self.outgoing.client(Reach::Public, TIMEOUT);
        let send = |request: HttpRequest| send(http.clone(), request);
        let answer = client
            .exchange_code(AuthorizationCode::new(code))
            .set_pkce_verifier(PkceCodeVerifier::new(secrets.verifier.clone()))
            .request_async(&send)
            .await
            .map_err(fault_of)?;
        let tokens = tokens_of(&answer);
        if tokens.id_token.is_none() {
            return Err(FederationFault::Answer("no ID token"));
        }
        Ok(tokens)
    }

    /// What the provider says now of a person whose refresh token we hold.
    ///
    /// # Errors
    /// `Gone` where the provider refuses; `Away` where it cannot be asked.
    pub async fn renew(
        &self,
        provider: &IdentityProvider,
        login: &Login,
        redirect_uri: &str,
        refresh_token: &Secret<String>,
    ) -> Result<Tokens, RenewFault> {
        let metadata = self.metadata(provider).await?;
        let secret = secret_of(login).map_err(FederationFault::from)?;
        let client = client(&metadata, login, redirect_uri, secret.as_ref())?;
        let http = self.outgoing.client(Reach::Public, TIMEOUT);
        let send = |request: HttpRequest| send(http.clone(), request);
        let token = RefreshToken::new(refresh_token.expose().clone());
        match client
            .exchange_refresh_token(&token)
            .request_async(&send)
            .await
        {
            Ok(answer) => Ok(tokens_of(&answer)),
            // Only this says something of the person; the others say something of us.
            Err(RequestTokenError::ServerResponse(said))
                if *said.error() == BasicErrorResponseType::InvalidGrant =>
            {
                Err(RenewFault::Gone)
            }
            Err(error) => Err(RenewFault::Away(fault_of(error))),
        }
    }

    /// What the provider's userinfo endpoint says of `subject`; `None` where there is none.
    ///
    /// # Errors
    /// [`FederationFault`], also where it speaks of somebody else
    /// (`OpenID` Connect Core §5.3.2).
    pub async fn userinfo(
        &self,
        provider: &IdentityProvider,
        subject: &str,
        access_token: &Secret<String>,
    ) -> Result<Option<Claims>, FederationFault> {
        let metadata = self.metadata(provider).await?;
        let Some(endpoint) = &metadata.userinfo_endpoint else {
            return Ok(None);
        };
        let http = self.outgoing.client(Reach::Public, TIMEOUT);
        let bearer = format!("Bearer {}", access_token.expose());
        let headers = [
            ("accept", "application/json"),
            ("authorization", bearer.as_str()),
        ];
        let asking = async {
            let answer = http.get(endpoint, headers).await?;
            let status = answer.status;
            Ok::<_, OutgoingFault>((status, answer.body(MAX_ANSWER).await?))
        };
        let (status, body) = in_time(endpoint, asking).await?;
        let claims: Option<Claims> = serde_json::from_slice(&body).ok();
        match claims {
            Some(claims) if status == 200 => {
                let same = claims.get("sub").and_then(serde_json::Value::as_str) == Some(subject);
                same.then_some(Some(claims))
                    .ok_or(FederationFault::Answer("somebody else's userinfo"))
            }
            _ => Err(FederationFault::Answer("no userinfo")),
        }
    }
}

fn secret_of(login: &Login) -> Result<Option<Secret<String>>, crate::config::SecretFileFault> {
    login
        .client_secret_file
        .as_deref()
        .map(read_secret_file)
        .transpose()
}

fn tokens_of(answer: &Answer) -> Tokens {
    let text = |text: &str| Secret::new(text.to_owned());
    Tokens {
        id_token: answer.extra_fields().id_token.clone(),
        access_token: text(answer.access_token().secret()),
        refresh_token: answer.refresh_token().map(|token| text(token.secret())),
    }
}

/// The texts of `oauth2` may hold what the server sent, tokens included: they stay here.
fn fault_of(error: RequestTokenError<OutgoingFault, BasicErrorResponse>) -> FederationFault {
    match error {
        RequestTokenError::ServerResponse(said) => {
            FederationFault::Refused(said.error().as_ref().chars().take(40).collect())
        }
        RequestTokenError::Request(fault) => FederationFault::Outgoing(fault),
        RequestTokenError::Parse(..) => {
            FederationFault::Answer("something that is no token answer")
        }
        RequestTokenError::Other(_) => FederationFault::Answer("nothing that can be read"),
    }
}

/// Sends what `oauth2` has put together over our own connections.
async fn send(client: HttpClient, request: HttpRequest) -> Result<HttpResponse, OutgoingFault> {
    let (parts, body) = request.into_parts();
    let url = parts.uri.to_string();
    let target = Target::try_from(url.as_str())?;
    let asking = async {
        let answer = client
            .send(parts.method, target, parts.headers, Some(Bytes::from(body)))
            .await?;
        let (status, kind) = (answer.status, answer.headers().get("content-type").cloned());
        let mut response = HttpResponse::new(answer.body(MAX_ANSWER).await?.into());
        if let Ok(status) = http::StatusCode::from_u16(status) {
            *response.status_mut() = status;
        }
        if let Some(kind) = kind {
            response.headers_mut().insert("content-type", kind);
        }
        Ok(response)
    };
    in_time(&url, asking).await
}

async fn in_time<T>(
    url: &str,
    asking: impl Future<Output = Result<T, OutgoingFault>>,
) -> Result<T, OutgoingFault> {
    match tokio::time::timeout(TIMEOUT, asking).await {
        Ok(answered) => answered,
        Err(_) => Err(OutgoingFault::TimedOut {
            host: Target::try_from(url).map_or_else(|_| String::new(), |to| to.host().to_owned()),
        }),
    }
}
