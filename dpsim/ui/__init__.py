"""The only rooms that import streamlit or plotly."""
