//! The labels that rules may name: a misspelt one would leave a kind as it is.

use super::super::check::Check;
use super::super::fault::nearest;

/// All labels of what is found without a pattern of the tenant's, apart by spaces.
/// The detectors' tests hold them against this list.
const LABELS: &str = "\
    active_markup address age_secret_key alibaba_access_key anthropic_key ar_cuit \
    artifactory_token at_svnr atlassian_token au_abn au_medicare au_tfn aws_access_key_id \
    aws_secret_access_key azure_client_secret azure_sas azure_storage_key bank_account \
    basic_auth be_nrn bearer_token bg_egn br_cnpj br_cpf brevo_key ca_sin ch_ahv cl_rut cn_id \
    credit_card crypto_wallet cz_rc data_link databricks_token date_of_birth de_id_card \
    de_social_security de_steuer_id digitalocean_token discord_token dk_cpr docker_pat \
    doppler_token driving_licence ee_isikukood email es_cif es_dni es_nie fi_hetu figma_token \
    fr_nir generic_secret github_token gitlab_token google_api_key google_oauth_secret \
    google_oauth_token gr_amka grafana_token groq_key health_insurance hidden_markup hk_id \
    hr_oib huggingface_token iban id_nik ie_pps il_id in_aadhaar in_pan internal_host \
    internal_path invisible ip_address it_cf it_piva jp_my_number jwt kr_rrn langsmith_key \
    linear_key mac_address mailgun_key medical_record mx_curp mx_rfc my_nric newrelic_key \
    nl_bsn no_fnr notion_token npm_token nuget_key nvidia_key nz_ird onepassword_token \
    openai_key passport password perplexity_key person phone pk_cnic pl_nip pl_pesel \
    posthog_key postman_key private_key prompt_injection pt_nif pulumi_token pypi_token \
    remote_resource replicate_token ro_cnp ru_inn ru_snils rubygems_token script_link \
    se_personnummer sendgrid_key sentry_token session_cookie sg_nric shopify_token slack_token \
    slack_webhook sourcegraph_token square_token stack_trace stripe_key supabase_token \
    telegram_token terminal terraform_token th_id tr_tckn tw_id twilio_key uk_nhs uk_nino \
    uk_sort_code uk_utr url_password us_ein us_itin us_mbi us_routing_number us_ssn \
    vault_token xai_key za_id";

/// All labels of what is found without a pattern of the tenant's.
pub fn labels() -> impl Iterator<Item = &'static str> {
    LABELS.split(' ')
}

/// Reports a label that neither Toolgate nor the tenant's patterns (`own`) have.
pub(super) fn validate(label: &str, own: &[&str], check: &mut Check<'_>) {
    let mut known: Vec<&str> = labels().collect();
    known.extend(own);
    if known.contains(&label) {
        return;
    }
    let instead = nearest(label, known).map_or_else(
        || "docs/sanitising.md lists the labels".to_owned(),
        |meant| format!("did you mean `{meant}`?"),
    );
    check.fault(
        format!("names `{label}`, which nothing is labelled"),
        instead,
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_sorted_and_stand_once() {
        let all: Vec<&str> = labels().collect();
        assert!(all.iter().all(|label| !label.is_empty()));
        assert!(all.windows(2).all(|pair| pair.first() < pair.last()));
    }
}
