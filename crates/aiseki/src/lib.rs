//! The service: seats waiting people together and tells them so.
