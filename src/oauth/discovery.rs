//! What the authorization server says of itself (RFC 8414 §2, `OpenID` Connect Discovery
//! §3). One text for every place that it is served from.

use serde_json::{Map, Value, json};

use super::machines::JWT_BEARER;
use super::{OFFLINE_ACCESS, Settings, Site};
use crate::config::ClientGrant;

/// The MCP extension of machines.
const CLIENT_CREDENTIALS_EXTENSION: &str = "io.modelcontextprotocol/oauth-client-credentials";
/// The MCP extension of ID-JAG.
const ENTERPRISE_EXTENSION: &str = "io.modelcontextprotocol/enterprise-managed-authorization";
/// The profile of ID-JAG (draft-ietf-oauth-identity-assertion-authz-grant).
const ID_JAG_PROFILE: &str = "urn:ietf:params:oauth:grant-profile:id-jag";

impl Site<'_> {
    /// The metadata document.
    pub fn metadata(&self) -> String {
        let registration = &self.settings.server.registration;
        let (machines, id_jag) = self.settings.without_people();
        let mut grants = vec!["authorization_code", "refresh_token"];
        if machines {
            grants.push("client_credentials");
        }
        if id_jag {
            grants.push(JWT_BEARER);
        }
        let scopes: Vec<&str> = self
            .settings
            .scopes
            .iter()
            .map(crate::ids::Scope::as_str)
            .chain([OFFLINE_ACCESS])
            .collect();
        let mut document = json!({
            "issuer": self.issuer,
            "authorization_endpoint": self.endpoint("/oauth/authorize"),
            "token_endpoint": self.endpoint("/oauth/token"),
            "jwks_uri": self.endpoint("/oauth/jwks"),
            "revocation_endpoint": self.endpoint("/oauth/revoke"),
            "introspection_endpoint": self.endpoint("/oauth/introspect"),
            "scopes_supported": scopes,
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "grant_types_supported": grants,
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": true,
            "client_id_metadata_document_supported": registration.metadata_documents,
            "prompt_values_supported": ["none", "login", "consent", "select_account"],
            "request_parameter_supported": false,
            "request_uri_parameter_supported": false,
        });
        if let Some(members) = document.as_object_mut() {
            self.put_what_varies(members, id_jag);
        }
        document.to_string()
    }

    /// How clients prove who they are, and what is there only where it is configured.
    fn put_what_varies(&self, members: &mut Map<String, Value>, id_jag: bool) {
        let mut put = |name: &str, value: Value| {
            members.insert(name.to_owned(), value);
        };
        let proofs = [
            "client_secret_basic",
            "client_secret_post",
            "private_key_jwt",
        ];
        let methods: Vec<&str> = ["none"].into_iter().chain(proofs).collect();
        put("token_endpoint_auth_methods_supported", json!(methods));
        put("revocation_endpoint_auth_methods_supported", json!(methods));
        put(
            "introspection_endpoint_auth_methods_supported",
            json!(proofs),
        );
        let algorithms = json!(["ES256", "RS256", "EdDSA"]);
        put(
            "token_endpoint_auth_signing_alg_values_supported",
            algorithms,
        );
        if self.settings.server.registration.dynamic {
            put(
                "registration_endpoint",
                self.endpoint("/oauth/register").into(),
            );
        }
        if id_jag {
            let profiles = json!([ID_JAG_PROFILE]);
            put("authorization_grant_profiles_supported", profiles);
        }
        let extensions = self.settings.extensions();
        if !extensions.is_empty() {
            put("mcp_extensions_supported", json!(extensions));
        }
    }
}

impl Settings {
    /// The MCP extensions that hold here; `server/discover` names them too.
    pub fn extensions(&self) -> &'static [&'static str] {
        match (self.server.enabled, self.without_people()) {
            (false, _) | (true, (false, false)) => &[],
            (true, (true, false)) => &[CLIENT_CREDENTIALS_EXTENSION],
            (true, (false, true)) => &[ENTERPRISE_EXTENSION],
            (true, (true, true)) => &[CLIENT_CREDENTIALS_EXTENSION, ENTERPRISE_EXTENSION],
        }
    }

    /// Whether machines get tokens for themselves, and clients for assertions.
    fn without_people(&self) -> (bool, bool) {
        let any = |grant| self.clients.values().any(|client| client.config.may(grant));
        let trusted = self.providers.values().any(|provider| provider.id_jag);
        (
            any(ClientGrant::ClientCredentials),
            any(ClientGrant::JwtBearer) && trusted,
        )
    }
}
